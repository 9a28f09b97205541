//! The best few of many.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::PassageId;

/// Keeps the best `count` of what it is offered; of equals, the earlier.
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
    /// Keeps so many.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k + 1),
        }
    }

    /// Keeps this one if it is among the best so far.
    pub fn offer(&mut self, score: f32, at: PassageId) {
        if self.heap.len() < self.k || score > self.threshold() {
            self.heap.push(Reverse(ScoredPassage(score, at)));
            if self.heap.len() > self.k {
                self.heap.pop();
            }
        }
    }

    /// What a score has to exceed to be kept.
    pub fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(least)) if self.heap.len() >= self.k => least.0,
            _ => f32::MIN,
        }
    }

    /// What was kept, the best first.
    pub fn into_sorted(self) -> Vec<(f32, PassageId)> {
        let mut kept: Vec<ScoredPassage> = self.heap.into_iter().map(|Reverse(one)| one).collect();
        kept.sort_by(|a, b| b.cmp(a));
        kept.into_iter()
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
        let kept: Vec<_> = best.into_sorted().into_iter().map(|(_, at)| at.0).collect();
        assert_eq!(kept, [1, 3]);
    }
}
