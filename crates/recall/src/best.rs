//! The best few of many.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::At;

/// Keeps the best `count` of what it is offered; of equals, the earlier.
#[derive(Debug)]
pub struct Best {
    count: usize,
    heap: BinaryHeap<Reverse<Scored>>,
}

#[derive(Debug, PartialEq)]
struct Scored(f32, At);

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.0.total_cmp(&other.0);
        by_score.then_with(|| other.1.cmp(&self.1))
    }
}

impl Best {
    /// Keeps so many.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            heap: BinaryHeap::with_capacity(count + 1),
        }
    }

    /// Keeps this one if it is among the best so far.
    pub fn offer(&mut self, score: f32, at: At) {
        if self.heap.len() < self.count || score > self.threshold() {
            self.heap.push(Reverse(Scored(score, at)));
            if self.heap.len() > self.count {
                self.heap.pop();
            }
        }
    }

    /// What a score has to exceed to be kept.
    pub fn threshold(&self) -> f32 {
        match self.heap.peek() {
            Some(Reverse(least)) if self.heap.len() >= self.count => least.0,
            _ => f32::MIN,
        }
    }

    /// What was kept, the best first.
    pub fn into_sorted(self) -> Vec<(f32, At)> {
        let mut kept: Vec<Scored> = self.heap.into_iter().map(|Reverse(one)| one).collect();
        kept.sort_by(|a, b| b.cmp(a));
        kept.into_iter()
            .map(|Scored(score, at)| (score, at))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_in_order() {
        let mut best = Best::new(2);
        for (at, score) in [(0, 1.0), (1, 3.0), (2, 2.0), (3, 3.0)] {
            best.offer(score, At(at));
        }
        let kept: Vec<_> = best.into_sorted().into_iter().map(|(_, at)| at.0).collect();
        assert_eq!(kept, [1, 3]);
    }
}
