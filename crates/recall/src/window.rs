//! The window of a passage: its neighbors in the session.
//!
//! Invariant: windows depend on the order of the passages, not on the order of their arrival.

use crate::analysis::AnalyzedPassage;
use crate::static_model::{DIM, normalize};
use crate::vector::Vector;

/// The number of passages before and after that belong to a window.
pub(crate) const REACH: usize = 2;

/// The weight of the preceding passage in a window's vector.
const PREVIOUS_WEIGHT: f32 = 0.5;

/// A passage, and up to [`REACH`] passages before and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    before: &'a [AnalyzedPassage],
    pub(crate) middle: &'a AnalyzedPassage,
    after: &'a [AnalyzedPassage],
}

impl<'a> Window<'a> {
    /// Returns the window of the passage at `index`.
    pub(crate) fn at(passages: &'a [AnalyzedPassage], index: usize) -> Self {
        let after = index + 1;
        Self {
            before: &passages[index.saturating_sub(REACH)..index],
            middle: &passages[index],
            after: &passages[after..passages.len().min(after + REACH)],
        }
    }

    /// Returns the neighbors of the middle passage.
    pub(crate) fn neighbors(&self) -> impl Iterator<Item = &'a AnalyzedPassage> {
        self.before.iter().chain(self.after)
    }

    /// Returns the preceding passage.
    pub(crate) fn previous(&self) -> Option<&'a AnalyzedPassage> {
        self.before.last()
    }

    /// Returns the pooled vector of the passage: its own vector, plus a fraction of the
    /// preceding one.
    pub(crate) fn vector(&self) -> Vector {
        let mut sum = self.middle.vector().to_vec();
        if let Some(before) = self.previous() {
            debug_assert_eq!(sum.len(), DIM);
            for (sum, x) in sum.iter_mut().zip(before.vector()) {
                *sum += PREVIOUS_WEIGHT * x;
            }
            normalize(&mut sum);
        }
        Vector::quantize(&sum)
    }
}
