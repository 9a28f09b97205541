//! What an index was made from: how far into a store it goes, and how to recognise that store.
//!
//! A store can move back in time: a backup is restored, a file is copied over, a write-ahead
//! log is lost. Positions are then given out again, to other entries. Every commit of an
//! index therefore records fingerprints of changes it was made from, and is only trusted
//! while the store still has the same ones.

use serde::{Deserialize, Serialize};
use throughline_model::Digest;

/// So many of the newest anchors are kept.
const NEWEST_ANCHORS: usize = 3;
/// Of older ones, one is kept for every so many times the distance from the end.
const ANCHOR_DISTANCE_BASE: u64 = 8;

/// The fingerprint of the change at a position of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Where the change is.
    pub position: u64,
    /// What it is recognised by.
    pub digest: Digest,
}

/// How far into a store an index goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexState {
    /// The position up to which the store is in the index.
    pub upto: u64,
    /// Some changes up to there, oldest first. The first is the first that ever happened,
    /// which identifies the store.
    #[serde(default)]
    pub anchors: Vec<Anchor>,
}

impl IndexState {
    /// The state after a batch up to a position, of which these are the changes.
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
            // The oldest of each bucket: the next bucket is then filled as it moves on.
            if index == 0 || index >= newest || bucket != this {
                anchors.push(anchor);
                // The first is there for itself.
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
