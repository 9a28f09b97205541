//! Trying again: after how long, and for how long.

use std::time::{Duration, Instant};

/// The first pause; each is twice the one before, up to the longest.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// How long something has been tried.
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

    /// Waits for as long as was asked for, or else a little; tells whether it is worth
    /// trying again within `limit` of the beginning.
    pub(crate) async fn wait(&mut self, asked: Option<Duration>, limit: Duration) -> bool {
        let pause = asked.unwrap_or(self.delay);
        // Clients that met once must not keep step.
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
