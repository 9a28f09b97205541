//! The state of an index: how far into a store it goes, and how to recognize that store.
//!
//! A store can move back in time: a backup is restored, a file is copied over, a write-ahead
//! log is lost. It then assigns the same positions to other entries. Every commit of an index
//! therefore records fingerprints of the changes it was built from, and the index is trusted
//! only while the store still has the same ones.

use serde::{Deserialize, Serialize};
use throughline_model::Digest;

/// The number of newest anchors that are kept.
const NEWEST_ANCHORS: usize = 3;
/// Older anchors are kept one per bucket; buckets grow by this factor with the distance from
/// the end.
const ANCHOR_DISTANCE_BASE: u64 = 8;

/// The fingerprint of the change at a position of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The position of the change.
    pub position: u64,
    /// The digest of the change.
    pub digest: Digest,
}

/// How far into a store an index goes, and the anchors that identify the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexState {
    /// The store position up to which entries are indexed.
    pub upto: u64,
    /// A sample of the changes up to there, oldest first. The first one is the store's first
    /// change, which identifies the store.
    #[serde(default)]
    pub anchors: Vec<Anchor>,
}

impl IndexState {
    /// Returns the state after a batch up to a position, built from these changes.
    #[must_use]
    pub fn advance(&self, upto: u64, changes: &[Anchor]) -> Self {
        let mut all = self.anchors.clone();
        let last = all.last().map_or(0, |last| last.position);
        all.extend(changes.iter().filter(|new| new.position > last));
        let newest = all.len().saturating_sub(NEWEST_ANCHORS);
        let mut anchors: Vec<Anchor> = Vec::new();
        let mut bucket = None;
        for (index, anchor) in all.into_iter().enumerate() {
            let distance = upto.saturating_sub(anchor.position).max(1);
            let this = Some(distance.ilog(ANCHOR_DISTANCE_BASE));
            // Keep the oldest of each bucket: as the end moves on, it becomes the next
            // bucket's anchor.
            if index == 0 || index >= newest || bucket != this {
                anchors.push(anchor);
                // The first anchor is always kept and belongs to no bucket.
                bucket = if index == 0 { None } else { this };
            }
        }
        Self { upto, anchors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(position: u64) -> Anchor {
        let digest = Digest::of(&position.to_le_bytes());
        Anchor { position, digest }
    }

    #[test]
    fn anchors_stay_few_and_spread_over_the_whole_history() {
        let mut state = IndexState::default();
        for position in 1..=5_000 {
            state = state.advance(position, &[anchor(position)]);
            let positions: Vec<u64> = state.anchors.iter().map(|one| one.position).collect();
            assert!(positions.is_sorted(), "{positions:?}");
            assert_eq!((positions[0], positions.last()), (1, Some(&position)));
            assert!(positions.len() <= 12, "{positions:?}");
            for distance in [8, 64, 512] {
                let near = positions
                    .iter()
                    .any(|at| (distance / 8..=distance * 8).contains(&(position - at)));
                assert!(near || position < distance * 8, "{positions:?}");
            }
        }
        let at_once: Vec<Anchor> = (1..=5_000).map(anchor).collect();
        let state = IndexState::default().advance(5_000, &at_once);
        assert!(state.anchors.len() <= 12);
    }
}
