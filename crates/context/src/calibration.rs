//! What estimates are worth, learned from what providers report.
//!
//! Stored counts stay as they were counted; the factor is applied where a figure is
//! compared with a provider's limit. Invariant: a factor is between one half and two,
//! and one until a model has reported [`ENOUGH`] times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many reports a factor needs.
const MIN_SAMPLES: u64 = 3;

/// By how much a model's own counts differ from ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    models: BTreeMap<String, ModelSamples>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ModelSamples {
    samples: u64,
    reported: u64,
    estimated: u64,
}

impl Calibration {
    /// Takes in what a provider reported for a request that was estimated.
    pub fn observe(&mut self, model: &str, reported: u64, estimated: u64) {
        if reported == 0 || estimated == 0 {
            return;
        }
        let seen = self.models.entry(model.to_owned()).or_default();
        seen.samples = seen.samples.saturating_add(1);
        seen.reported = seen.reported.saturating_add(reported);
        seen.estimated = seen.estimated.saturating_add(estimated);
    }

    /// What to multiply an estimate by.
    #[allow(clippy::cast_precision_loss, reason = "a ratio of large counts")]
    pub fn factor(&self, model: &str) -> f64 {
        match self.models.get(model) {
            Some(seen) if seen.samples >= MIN_SAMPLES => {
                (seen.reported as f64 / seen.estimated as f64).clamp(0.5, 2.0)
            }
            _ => 1.0,
        }
    }

    /// An estimate as the model would count it.
    pub fn apply(&self, model: &str, estimate: u64) -> u64 {
        scale(estimate, self.factor(model))
    }

    /// How many of our tokens fit into so many of the model's: the budget to build with.
    pub fn scale_budget(&self, model: &str, tokens: u64) -> u64 {
        scale(tokens, self.factor(model).recip())
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are small and factors positive; the cast saturates"
)]
fn scale(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_needs_three_reports() {
        let mut calibration = Calibration::default();
        for _ in 0..2 {
            calibration.observe("m", 150, 100);
            assert_eq!(calibration.apply("m", 1_000), 1_000);
        }
        calibration.observe("m", 150, 100);
        assert!((calibration.factor("m") - 1.5).abs() < 1e-9);
        assert_eq!(calibration.apply("m", 1_000), 1_500);
        assert_eq!(calibration.scale_budget("m", 1_500), 1_000);
        assert_eq!(calibration.apply("other", 1_000), 1_000);
    }

    #[test]
    fn absurd_reports_are_held_in_bounds() {
        let mut calibration = Calibration::default();
        for _ in 0..3 {
            calibration.observe("high", u64::MAX, 1);
            calibration.observe("low", 1, u64::MAX);
            calibration.observe("none", 0, 0);
        }
        assert_eq!(calibration.apply("high", 10), 20);
        assert_eq!(calibration.apply("low", 10), 5);
        assert_eq!(calibration.apply("none", 10), 10);
    }
}
