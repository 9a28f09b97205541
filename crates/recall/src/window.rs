//! A passage among those around it in its session.
//!
//! Invariant: windows are a function of the passages in order, however they arrived.

use crate::analysis::AnalyzedPassage;
use crate::static_model::{DIM, normalize};
use crate::vector::Vector;

/// So many passages before and after belong to a window.
pub(crate) const REACH: usize = 2;

/// How much the passage before counts in a vector.
const PREVIOUS_WEIGHT: f32 = 0.5;

/// A passage, and up to [`REACH`] before and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    before: &'a [AnalyzedPassage],
    pub(crate) middle: &'a AnalyzedPassage,
    after: &'a [AnalyzedPassage],
}

impl<'a> Window<'a> {
    /// The window of the passage at `index`.
    pub(crate) fn at(passages: &'a [AnalyzedPassage], index: usize) -> Self {
        let after = index + 1;
        Self {
            before: &passages[index.saturating_sub(REACH)..index],
            middle: &passages[index],
            after: &passages[after..passages.len().min(after + REACH)],
        }
    }

    /// The passages around the middle one.
    pub(crate) fn neighbors(&self) -> impl Iterator<Item = &'a AnalyzedPassage> {
        self.before.iter().chain(self.after)
    }

    /// The passage just before.
    pub(crate) fn previous(&self) -> Option<&'a AnalyzedPassage> {
        self.before.last()
    }

    /// What the passage is compared by as a whole: its own vector first, then a little of
    /// the one before.
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
