//! Measures contenders in alternating rounds.
//!
//! Contenders run one after another within each round, and each round starts with another one,
//! so that a disk that slows down for a second does so for all of them. A ratio is taken within
//! a round; the result is the median over the rounds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::units::to_f64;

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundOptions {
    /// The number of rounds.
    pub(crate) rounds: usize,
    /// How long a contender runs in each round.
    pub(crate) slice: Duration,
}

/// Something to measure: returns its number for one slice of time.
pub(crate) struct Contender<'a> {
    name: String,
    run: Box<dyn FnMut() -> Result<f64> + 'a>,
    samples: Samples,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(name: impl Into<String>, run: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self {
            name: name.into(),
            run: Box::new(run),
            samples: Samples::default(),
        }
    }
}

/// Runs all contenders in alternating rounds; returns their samples in the given order.
///
/// Each runs once before the first counted round, to fill caches and open connections.
pub(crate) fn run_rounds(
    rounds: usize,
    mut contenders: Vec<Contender<'_>>,
) -> Result<Vec<Samples>> {
    let count = contenders.len();
    for round in 0..=rounds {
        for turn in 0..count {
            let contender = &mut contenders[(round + turn) % count];
            let sample = (contender.run)().with_context(|| contender.name.clone())?;
            if round > 0 {
                contender.samples.0.push(sample);
            }
        }
    }
    Ok(contenders.into_iter().map(|one| one.samples).collect())
}

/// The results of one contender, one per round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }

    /// Returns the ratios to another contender, round by round.
    pub(crate) fn ratios(&self, to: &Self) -> Self {
        Self(self.0.iter().zip(&to.0).map(|(a, b)| a / b).collect())
    }

    /// Converts rates to times, or times to rates.
    pub(crate) fn inverse(&self) -> Self {
        Self(self.0.iter().map(|value| 1.0 / value).collect())
    }
}

/// Measures how many times per second `once` can be run, over a slice of time.
pub(crate) fn measure_rate(slice: Duration, mut once: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let mut done = 0;
    while done == 0 || start.elapsed() < slice {
        once()?;
        done += 1;
    }
    Ok(to_f64(done) / start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contenders_take_turns_and_the_first_round_is_not_counted() {
        let order = std::cell::RefCell::new(String::new());
        let one = |name: &'static str| {
            let order = &order;
            Contender::new(name, move || {
                order.borrow_mut().push_str(name);
                Ok(1.0)
            })
        };
        let samples = run_rounds(2, vec![one("a"), one("b")]).unwrap();
        assert_eq!(samples[0].0.len(), 2);
        drop(samples);
        assert_eq!(order.into_inner(), "abbaab");
    }

    #[test]
    fn the_ratio_is_taken_within_each_round() {
        let ours = Samples(vec![10.0, 100.0, 9.0]);
        let theirs = Samples(vec![5.0, 50.0, 3.0]);
        assert!((ours.ratios(&theirs).median() - 2.0).abs() < 1e-9);
    }
}
