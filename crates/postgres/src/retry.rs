//! Retries operations with exponential backoff until a time limit.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use throughline_store::StoreError;

use crate::error::Fault;

/// The first delay; it doubles with each retry, up to the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_millis(500);

/// The backoff state of one operation.
#[derive(Debug)]
pub(crate) struct Backoff {
    deadline: Instant,
    delay: Duration,
}

impl Backoff {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            deadline: Instant::now() + limit,
            delay: FIRST_DELAY,
        }
    }

    /// Waits for the next delay; returns whether to try again.
    pub(crate) async fn wait(&mut self) -> bool {
        if Instant::now() >= self.deadline {
            return false;
        }
        // Per-process jitter, so that processes that collided once do not retry in step.
        let spread = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        let pause = self.delay + self.delay * u32::try_from(spread).unwrap_or(0) / 16;
        tokio::time::sleep(pause).await;
        self.delay = (self.delay * 2).min(MAX_DELAY);
        true
    }
}

/// What is known of the attempts before this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// An earlier attempt may have been committed.
    pub(crate) may_be_committed: bool,
}

/// Runs an operation until it succeeds, fails permanently, or reaches the time limit.
pub(crate) async fn retry<'a, T>(
    limit: Duration,
    work: impl Fn(Attempt) -> BoxFuture<'a, Result<T, Fault>>,
) -> Result<T, StoreError> {
    let mut backoff = Backoff::new(limit);
    let mut attempt = Attempt::default();
    loop {
        match work(attempt).await {
            Ok(done) => return Ok(done),
            Err(fault) => {
                attempt.may_be_committed |= fault.is_outcome_unknown();
                if !fault.is_transient() || !backoff.wait().await {
                    return Err(
                        match (attempt.may_be_committed, fault.into_final_error(limit)) {
                            (true, StoreError::Backend { source, .. }) => {
                                StoreError::OutcomeUnknown { source }
                            }
                            (_, failure) => failure,
                        },
                    );
                }
            }
        }
    }
}
