//! Selects the k highest-scoring passages.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::PassageId;

/// Keeps the k best passages offered to it; among equal scores, the earlier one.
#[derive(Debug)]
pub struct TopK {
    k: usize,
    heap: BinaryHeap<Reverse<ScoredPassage>>,
}

#[derive(Debug, PartialEq)]
struct ScoredPassage(f32, PassageId);

impl Eq for ScoredPassage {}

impl PartialOrd for ScoredPassage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScoredPassage {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.0.total_cmp(&other.0);
        by_score.then_with(|| other.1.cmp(&self.1))
    }
}

impl TopK {
    /// Creates a selection of the best `k`.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k + 1),
        }
    }

    /// Adds a passage if it is among the best so far.
    pub fn offer(&mut self, score: f32, at: PassageId) {
        if self.heap.len() < self.k || score > self.threshold() {
            self.heap.push(Reverse(ScoredPassage(score, at)));
            if self.heap.len() > self.k {
                self.heap.pop();
            }
        }
    }

    /// Returns the score that a passage must exceed to be added.
    pub fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(least)) if self.heap.len() >= self.k => least.0,
            _ => f32::MIN,
        }
    }

    /// Returns the selected passages, the best first.
    pub fn into_sorted(self) -> Vec<(f32, PassageId)> {
        let mut sorted: Vec<ScoredPassage> =
            self.heap.into_iter().map(|Reverse(one)| one).collect();
        sorted.sort_by(|a, b| b.cmp(a));
        sorted
            .into_iter()
            .map(|ScoredPassage(score, at)| (score, at))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_in_order() {
        let mut best = TopK::new(2);
        for (at, score) in [(0, 1.0), (1, 3.0), (2, 2.0), (3, 3.0)] {
            best.offer(score, PassageId(at));
        }
        let sorted: Vec<_> = best.into_sorted().into_iter().map(|(_, at)| at.0).collect();
        assert_eq!(sorted, [1, 3]);
    }
}
