//! Calibrates token estimates per model from the usage that providers report.
//!
//! Stored counts stay as they were counted; the factor is applied where a figure is
//! compared with a provider's limit. Invariant: a factor is between one half and two,
//! and exactly one until a model has reported [`MIN_SAMPLES`] times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The number of reports required before a factor is used.
const MIN_SAMPLES: u64 = 3;

/// The ratio of each model's reported counts to our estimates.
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
    /// Records what a provider reported for an estimated request.
    pub fn observe(&mut self, model: &str, reported: u64, estimated: u64) {
        if reported == 0 || estimated == 0 {
            return;
        }
        let seen = self.models.entry(model.to_owned()).or_default();
        seen.samples = seen.samples.saturating_add(1);
        seen.reported = seen.reported.saturating_add(reported);
        seen.estimated = seen.estimated.saturating_add(estimated);
    }

    /// The factor to multiply an estimate by.
    #[allow(clippy::cast_precision_loss, reason = "a ratio of large counts")]
    pub fn factor(&self, model: &str) -> f64 {
        match self.models.get(model) {
            Some(seen) if seen.samples >= MIN_SAMPLES => {
                (seen.reported as f64 / seen.estimated as f64).clamp(0.5, 2.0)
            }
            _ => 1.0,
        }
    }

    /// Converts an estimate to the model's count.
    pub fn apply(&self, model: &str, estimate: u64) -> u64 {
        scale(estimate, self.factor(model))
    }

    /// Converts a budget in the model's tokens to our tokens: the budget to build with.
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
