//! Retry backoff: how long to wait between attempts, and when to give up.

use std::time::{Duration, Instant};

/// The first delay; each is twice the one before, up to the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// The state of a sequence of retries.
#[derive(Debug)]
pub(crate) struct Backoff {
    started: Instant,
    delay: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            delay: FIRST_DELAY,
        }
    }

    /// Waits for the requested delay, or else the next backoff delay; returns whether to retry,
    /// which is so within `limit` of the first attempt.
    pub(crate) async fn wait(&mut self, requested: Option<Duration>, limit: Duration) -> bool {
        let pause = requested.unwrap_or(self.delay);
        // Jitter: clients that failed together must not retry together.
        let spread = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        let pause = pause + self.delay * u32::try_from(spread).unwrap_or(0) / 16;
        if self.started.elapsed() + pause > limit {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.delay = (self.delay * 2).min(MAX_DELAY);
        true
    }
}
