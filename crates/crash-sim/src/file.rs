//! The content of one file: what is durable, and what the disk may hold after a power cut.
//!
//! A disk writes sectors of 512 bytes, each atomically, in any order and at any time. So every
//! sector of a file may hold its durable content or the result of any later write. A sync
//! makes the sectors written before it durable. A failed sync does not, and marks them as
//! clean, as Linux does: only what is written again afterwards becomes durable with the next
//! sync.
//!
//! Truncating a file is ordered with the writes around it: no sector holds what was written
//! after the truncation while the file has its old length.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Rng;
use crate::power_cut::FileLoss;

pub(crate) const SECTOR: usize = 512;

/// The content of a sector after one write.
#[derive(Clone, Debug)]
struct Version {
    step: usize,
    bytes: Arc<[u8]>,
}

/// A sector that may hold something other than its durable content.
#[derive(Clone, Debug, Default)]
struct Sector {
    versions: Vec<Version>,
    /// Whether the next sync writes it.
    dirty: bool,
}

/// The changes since the file was last truncated.
#[derive(Clone, Debug, Default)]
struct Segment {
    /// The truncation that began it; `None` for the first segment.
    cut: Option<(usize, usize)>,
    sectors: BTreeMap<usize, Sector>,
    /// The lengths the file has grown to.
    lengths: Vec<(usize, usize)>,
}

/// A file with its durable and pending content.
#[derive(Clone, Debug)]
pub(crate) struct File {
    durable: Vec<u8>,
    live: Vec<u8>,
    segments: Vec<Segment>,
    /// Whether it is mapped into memory for writing, so that its content is unknown.
    pub(crate) mapped: bool,
}

impl File {
    /// Creates a file with durable content.
    pub(crate) fn new(durable: Vec<u8>) -> Self {
        Self {
            live: durable.clone(),
            durable,
            segments: vec![Segment::default()],
            mapped: false,
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.live.len()
    }

    fn current_segment(&mut self) -> &mut Segment {
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last]
    }

    pub(crate) fn write(&mut self, step: usize, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if end > self.live.len() {
            self.grow(step, end);
        }
        self.live[offset..end].copy_from_slice(data);
        for number in offset / SECTOR..end.div_ceil(SECTOR) {
            let start = number * SECTOR;
            let bytes = &self.live[start..self.live.len().min(start + SECTOR)];
            let version = Version {
                step,
                bytes: bytes.into(),
            };
            let sector = self.current_segment().sectors.entry(number).or_default();
            sector.versions.push(version);
            sector.dirty = true;
        }
    }

    pub(crate) fn set_length(&mut self, step: usize, length: usize) {
        if length >= self.live.len() {
            self.grow(step, length);
            return;
        }
        self.live.truncate(length);
        self.segments.push(Segment {
            cut: Some((step, length)),
            ..Segment::default()
        });
    }

    pub(crate) fn grow(&mut self, step: usize, length: usize) {
        if length > self.live.len() {
            self.live.resize(length, 0);
            self.current_segment().lengths.push((step, length));
        }
    }

    pub(crate) fn sync(&mut self) {
        if self.segments.len() > 1 {
            self.durable.clone_from(&self.live);
            self.segments = vec![Segment::default()];
            return;
        }
        self.durable.resize(self.live.len(), 0);
        let durable = &mut self.durable;
        for segment in &mut self.segments {
            segment.lengths.clear();
            segment.sectors.retain(|number, sector| {
                if let Some(last) = sector.versions.last().filter(|_| sector.dirty) {
                    overwrite(durable, *number, &last.bytes);
                }
                !sector.dirty
            });
        }
    }

    pub(crate) fn fail_sync(&mut self) {
        for segment in &mut self.segments {
            for sector in segment.sectors.values_mut() {
                sector.dirty = false;
            }
        }
    }

    /// Returns the steps whose effect may be lost.
    pub(crate) fn unsynced_steps(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().flat_map(|segment| {
            let cut = segment.cut.iter().map(|(step, _)| *step);
            let lengths = segment.lengths.iter().map(|(step, _)| *step);
            let sectors = segment.sectors.values();
            let versions = sectors.flat_map(|sector| sector.versions.iter().map(|v| v.step));
            cut.chain(lengths).chain(versions)
        })
    }

    /// Returns the content of the file after a loss.
    pub(crate) fn after_loss(&self, loss: &FileLoss, rng: &mut Rng) -> Vec<u8> {
        if matches!(loss, FileLoss::Nothing) {
            return self.live.clone();
        }
        let cuts: Vec<usize> = self
            .segments
            .iter()
            .filter_map(|s| Some(s.cut?.0))
            .collect();
        let kept_cuts = loss.surviving_metadata(&cuts, rng);
        let mut content = self.durable.clone();
        for segment in self.segments.iter().take(kept_cuts + 1) {
            if let Some((_, length)) = segment.cut {
                content.resize(length, 0);
            }
            let steps: Vec<usize> = segment.lengths.iter().map(|(step, _)| *step).collect();
            if let Some(last) = loss.surviving_metadata(&steps, rng).checked_sub(1) {
                let length = segment.lengths[last].1.max(content.len());
                content.resize(length, 0);
            }
            for (number, sector) in &segment.sectors {
                let steps: Vec<usize> = sector.versions.iter().map(|v| v.step).collect();
                if let Some(last) = loss.surviving_writes(&steps, *number, rng).checked_sub(1) {
                    overwrite(&mut content, *number, &sector.versions[last].bytes);
                }
            }
        }
        content
    }
}

/// Overwrites a sector of a file, up to the file's length.
fn overwrite(content: &mut [u8], number: usize, bytes: &[u8]) {
    let start = (number * SECTOR).min(content.len());
    let end = (start + bytes.len()).min(content.len());
    content[start..end].copy_from_slice(&bytes[..end - start]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(file: &File, loss: &FileLoss) -> Vec<u8> {
        file.after_loss(loss, &mut Rng::new(1))
    }

    #[test]
    fn what_is_not_synced_may_be_lost_and_what_is_may_not() {
        let mut file = File::new(Vec::new());
        file.write(1, 0, b"first");
        assert_eq!(lost(&file, &FileLoss::Everything), b"");
        assert_eq!(lost(&file, &FileLoss::Nothing), b"first");
        file.sync();
        file.write(2, 0, b"other");
        assert_eq!(lost(&file, &FileLoss::Everything), b"first");
    }

    #[test]
    fn a_sector_is_old_or_new_and_never_mixed() {
        let mut file = File::new(vec![b'a'; 4 * SECTOR]);
        file.write(1, 0, &vec![b'b'; 4 * SECTOR]);
        let mut torn = 0;
        for seed in 0..50 {
            let content = file.after_loss(&FileLoss::Sectors, &mut Rng::new(seed));
            for sector in content.chunks(SECTOR) {
                assert!(sector.iter().all(|byte| *byte == sector[0]));
            }
            torn += usize::from(content[0] != content[3 * SECTOR]);
        }
        assert!(torn > 5, "{torn}");
    }

    #[test]
    fn after_a_failed_sync_only_what_is_written_again_becomes_durable() {
        let mut file = File::new(vec![b'a'; 2 * SECTOR]);
        file.write(1, 0, &vec![b'b'; 2 * SECTOR]);
        file.fail_sync();
        file.write(2, 0, &[b'c'; SECTOR]);
        file.sync();
        let content = lost(&file, &FileLoss::Everything);
        assert_eq!((content[0], content[SECTOR]), (b'c', b'a'));
    }

    #[test]
    fn what_follows_a_cut_needs_the_cut() {
        let mut file = File::new(vec![b'a'; 4 * SECTOR]);
        file.set_length(1, 0);
        file.write(2, 0, &[b'b'; SECTOR]);
        for seed in 0..50 {
            let content = file.after_loss(&FileLoss::Sectors, &mut Rng::new(seed));
            let is_old = content == vec![b'a'; 4 * SECTOR];
            assert!(is_old || content.iter().all(|byte| *byte != b'a'));
        }
    }
}
