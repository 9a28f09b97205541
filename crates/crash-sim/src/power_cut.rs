//! Chooses when a simulated power cut happens, and what is lost.

use std::fmt;

use crate::disk::DurabilityModel;
use crate::file::SECTOR;
use crate::{Operation, Rng, Trace};

/// How much of the unsynced content and names is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of it.
    Everything,
    /// None of it: the program is killed, but the disk keeps running.
    Nothing,
    /// A random part, chosen by this seed.
    Random(u64),
}

/// A power cut after a number of records, with a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// How many records precede it.
    pub after: usize,
    /// What is lost.
    pub loss: Loss,
}

impl fmt::Display for PowerCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "power cut after record {}, ", self.after)?;
        match self.loss {
            Loss::Everything => write!(f, "all that was not synced lost"),
            Loss::Nothing => write!(f, "nothing lost"),
            Loss::Random(seed) => write!(f, "loss from seed {seed}"),
        }
    }
}

/// A loss, before it is decided for each file.
pub(crate) enum LossPlan {
    Everything,
    Nothing,
    /// Everything after a step, in all files; that step may be torn.
    Ordered {
        first_lost: usize,
        torn: bool,
    },
    /// Each file independently.
    Independent,
}

/// What is lost of a file.
pub(crate) enum FileLoss {
    Everything,
    Nothing,
    /// Everything after a step, and the sectors of that step from one on.
    From {
        first_lost: usize,
        torn_at: Option<usize>,
    },
    /// One write.
    OneWrite(usize),
    /// Pages of 4,096 bytes, each independently.
    Pages(u64),
    /// Sectors, each independently.
    Sectors,
}

/// What is lost of the directory entries.
pub(crate) enum NameLoss {
    /// The changes from this step on.
    From(usize),
    /// Each change independently.
    Independent,
}

impl Loss {
    pub(crate) fn rng(self) -> Rng {
        match self {
            Self::Random(seed) => Rng::new(seed),
            Self::Everything | Self::Nothing => Rng::new(0),
        }
    }

    pub(crate) fn plan(self, steps: &[usize], rng: &mut Rng) -> LossPlan {
        match self {
            Self::Everything => LossPlan::Everything,
            Self::Nothing => LossPlan::Nothing,
            Self::Random(_) if !steps.is_empty() && rng.one_in(4) => LossPlan::Ordered {
                first_lost: steps[rng.below(steps.len())],
                torn: rng.one_in(2),
            },
            Self::Random(_) => LossPlan::Independent,
        }
    }
}

impl LossPlan {
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, Self::Ordered { .. } | Self::Independent)
    }

    pub(crate) fn draw_file_loss(&self, steps: &[usize], rng: &mut Rng) -> FileLoss {
        match self {
            Self::Everything => FileLoss::Everything,
            Self::Nothing => FileLoss::Nothing,
            Self::Ordered { first_lost, torn } => FileLoss::From {
                first_lost: *first_lost,
                torn_at: torn.then(|| rng.below(16)),
            },
            Self::Independent if steps.is_empty() => FileLoss::Everything,
            Self::Independent => {
                let step = steps[rng.below(steps.len())];
                match rng.below(8) {
                    0 => FileLoss::Everything,
                    1 => FileLoss::Nothing,
                    2 => FileLoss::From {
                        first_lost: step,
                        torn_at: None,
                    },
                    3 => FileLoss::From {
                        first_lost: step,
                        torn_at: Some(rng.below(16)),
                    },
                    4 => FileLoss::OneWrite(step),
                    5 | 6 => FileLoss::Pages(rng.next_u64()),
                    _ => FileLoss::Sectors,
                }
            }
        }
    }

    pub(crate) fn draw_name_loss(
        &self,
        model: DurabilityModel,
        steps: &[usize],
        rng: &mut Rng,
    ) -> NameLoss {
        match self {
            Self::Everything => NameLoss::From(0),
            Self::Nothing => NameLoss::From(usize::MAX),
            Self::Ordered { first_lost, .. } => NameLoss::From(*first_lost),
            Self::Independent => match rng.below(4) {
                0 => NameLoss::From(0),
                1 => NameLoss::From(usize::MAX),
                _ if model == DurabilityModel::Posix => NameLoss::Independent,
                _ => NameLoss::From(
                    steps
                        .get(rng.below(steps.len().max(1)))
                        .copied()
                        .unwrap_or(0),
                ),
            },
        }
    }
}

impl FileLoss {
    /// Returns how many of these changes of a file's length survive.
    pub(crate) fn surviving_metadata(&self, steps: &[usize], rng: &mut Rng) -> usize {
        match self {
            Self::Everything => 0,
            Self::From {
                first_lost,
                torn_at,
            } => {
                let is_kept = |step: &&usize| {
                    **step < *first_lost || (torn_at.is_some() && **step == *first_lost)
                };
                steps.iter().filter(is_kept).count()
            }
            Self::OneWrite(step) if steps.last() == Some(step) => steps.len() - 1,
            Self::Pages(_) | Self::Sectors if rng.one_in(2) => rng.below(steps.len() + 1),
            Self::Nothing | Self::OneWrite(_) | Self::Pages(_) | Self::Sectors => steps.len(),
        }
    }

    /// Returns how many of the writes to a sector survive.
    pub(crate) fn surviving_writes(&self, steps: &[usize], sector: usize, rng: &mut Rng) -> usize {
        match self {
            Self::Everything | Self::Nothing | Self::OneWrite(_) => {
                self.surviving_metadata(steps, rng)
            }
            Self::From {
                first_lost,
                torn_at,
            } => {
                let is_kept = |step: &&usize| {
                    **step < *first_lost
                        || (**step == *first_lost && torn_at.is_some_and(|torn| sector % 16 < torn))
                };
                steps.iter().filter(is_kept).count()
            }
            Self::Pages(seed) => {
                let page = sector * SECTOR / 4_096;
                let mut page = Rng::new(seed ^ page as u64);
                match page.below(4) {
                    0 => 0,
                    1 => page.below(steps.len() + 1),
                    _ => steps.len(),
                }
            }
            Self::Sectors => rng.below(steps.len() + 1),
        }
    }
}

/// Chooses `count` power cuts: first the loss of everything around each sync, acknowledgement,
/// rename, removal and process exit, then random losses, mostly at the same points.
pub fn power_cuts(trace: &Trace, first: usize, seed: u64, count: usize) -> Vec<PowerCut> {
    let mut rng = Rng::new(seed);
    let records = trace.records.len();
    let mut points: Vec<usize> = Vec::new();
    let is_ack = |number: usize| {
        let record = trace.records.get(number);
        record.is_some_and(|record| matches!(record.operation, Operation::Ack { .. }))
    };
    for (number, record) in trace.records.iter().enumerate().skip(first) {
        if !matches!(
            record.operation,
            Operation::Write { .. } | Operation::Map | Operation::Failed
        ) {
            // Of several consecutive acknowledgements, only before the first and after the
            // last.
            let between = |point: usize| point > first && is_ack(point - 1) && is_ack(point);
            let around = [number, number + 1].into_iter();
            points.extend(around.filter(|point| !between(*point)));
        }
    }
    points.dedup();
    if points.is_empty() {
        points.push(records);
    }
    let mut cuts: Vec<PowerCut> = points
        .iter()
        .map(|point| PowerCut {
            after: *point,
            loss: Loss::Everything,
        })
        .collect();
    while cuts.len() > count / 2 + 1 {
        let dropped = rng.below(cuts.len());
        cuts.swap_remove(dropped);
    }
    while cuts.len() < count {
        let after = if rng.one_in(4) {
            first + rng.below(records + 1 - first)
        } else {
            points[rng.below(points.len())]
        };
        let loss = if rng.one_in(12) {
            Loss::Nothing
        } else {
            Loss::Random(rng.next_u64())
        };
        cuts.push(PowerCut { after, loss });
    }
    cuts
}
