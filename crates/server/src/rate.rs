//! How often one caller may call.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::Rate;

/// After so many requests, callers that have long been quiet are forgotten.
const TIDY_EVERY: u32 = 4_096;

/// Counts requests by caller.
#[derive(Debug)]
pub(crate) struct Rates {
    limiter: Option<DefaultKeyedRateLimiter<String>>,
    since_tidy: AtomicU32,
    clock: DefaultClock,
}

impl Rates {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        let limiter = rate.map(|rate| {
            let some = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
            let quota = Quota::per_second(some(rate.per_second)).allow_burst(some(rate.burst));
            RateLimiter::keyed(quota)
        });
        Self {
            limiter,
            since_tidy: AtomicU32::new(0),
            clock: DefaultClock::default(),
        }
    }

    /// Lets one more request of a caller through, or tells in how many seconds it may
    /// come again.
    pub(crate) fn admit(&self, caller: &str) -> Result<(), u32> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        if self.since_tidy.fetch_add(1, Ordering::Relaxed) >= TIDY_EVERY {
            self.since_tidy.store(0, Ordering::Relaxed);
            limiter.retain_recent();
        }
        limiter.check_key(&caller.to_owned()).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            u32::try_from(seconds).unwrap_or(u32::MAX)
        })
    }
}
