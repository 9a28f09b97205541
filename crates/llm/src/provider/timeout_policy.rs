//! Timeouts and retries of requests to a provider.

use std::time::Duration;

/// Timeouts and the retry policy of requests to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutPolicy {
    /// Time limit for connecting.
    pub connect: Duration,
    /// Time limit until the answer starts. Local models can take minutes to process a long
    /// request.
    pub first_byte: Duration,
    /// Time limit between two chunks of the answer.
    pub idle: Duration,
    /// Maximum number of retries after a transient error.
    pub retries: u32,
    /// Delay before the first retry; doubles with each further one.
    pub backoff: Duration,
    /// Maximum delay. If the provider requests a longer one, the request fails.
    pub max_wait: Duration,
}

impl Default for TimeoutPolicy {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            retries: 3,
            backoff: Duration::from_secs(1),
            max_wait: Duration::from_secs(60),
        }
    }
}

impl TimeoutPolicy {
    /// Returns the delay after the `attempt`th failure, counted from 1; `None` to give up.
    ///
    /// `seed` adds jitter, so that clients that failed together do not retry together.
    pub(super) fn retry_delay(
        &self,
        attempt: u32,
        requested: Option<Duration>,
        seed: u64,
    ) -> Option<Duration> {
        if attempt > self.retries {
            return None;
        }
        if let Some(requested) = requested {
            return (requested <= self.max_wait).then_some(requested);
        }
        let doubled = self.backoff.saturating_mul(1 << (attempt - 1).min(16));
        Some(doubled.min(self.max_wait).mul_f64(jitter(seed, attempt)))
    }
}

/// Returns a factor between 0.5 and 1.
fn jitter(seed: u64, attempt: u32) -> f64 {
    // SplitMix64: every bit of the seed affects every bit of the result.
    let mut mixed = seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    0.5 + f64::from(u32::try_from(mixed >> 32).unwrap_or(0)) / f64::from(u32::MAX) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_spread() {
        let timing = TimeoutPolicy::default();
        let waits: Vec<_> = (1..=4)
            .map(|attempt| timing.retry_delay(attempt, None, 7))
            .collect();
        for (attempt, wait) in waits.iter().take(3).enumerate() {
            let most = Duration::from_secs(1 << attempt);
            assert!(
                wait.is_some_and(|wait| wait <= most && wait * 2 >= most),
                "{waits:?}"
            );
        }
        assert_eq!(waits[3], None, "no more retries");
        assert_ne!(
            timing.retry_delay(1, None, 7),
            timing.retry_delay(1, None, 8)
        );
        assert_eq!(
            timing.retry_delay(1, None, 7),
            timing.retry_delay(1, None, 7)
        );
    }

    #[test]
    fn the_providers_retry_after_counts_up_to_max_wait() {
        let timing = TimeoutPolicy::default();
        let (short, long) = (Duration::from_secs(7), Duration::from_secs(700));
        assert_eq!(timing.retry_delay(1, Some(short), 7), Some(short));
        assert_eq!(timing.retry_delay(1, Some(long), 7), None);
    }
}
