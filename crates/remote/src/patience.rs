//! Trying again: after how long, and for how long.

use std::time::{Duration, Instant};

/// The first pause; each is twice the one before, up to the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How long something has been tried.
#[derive(Debug)]
pub(crate) struct Patience {
    began: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            pause: FIRST,
        }
    }

    /// Waits for as long as was asked for, or else a little; tells whether it is worth
    /// trying again within `limit` of the beginning.
    pub(crate) async fn wait(&mut self, asked: Option<Duration>, limit: Duration) -> bool {
        let pause = asked.unwrap_or(self.pause);
        // Clients that met once must not keep step.
        let spread = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        let pause = pause + self.pause * u32::try_from(spread).unwrap_or(0) / 16;
        if self.began.elapsed() + pause > limit {
            return false;
        }
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(LONGEST);
        true
    }
}
