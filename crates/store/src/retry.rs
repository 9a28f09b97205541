//! Decides when a queued write is given up, and how a failed batch is handled.
//!
//! Both SQL stores commit queued writes in batches and use the same rules: every write
//! has one deadline, counted from its submission; a batch is split only when one of its
//! writes is at fault; and when the store itself fails, the whole batch fails. Nothing
//! here reads a clock, sleeps or does I/O: `now` is an argument, so that a simulation
//! can drive the same decisions with its own clock.
//!
//! Invariant: a write that was answered with an error is not run afterwards.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a write may take, and how retries are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The total time for a write: waiting in the queue, all attempts, all pauses.
    pub time_limit: Duration,
    /// The pause before the first retry; it doubles with each retry.
    pub initial_backoff: Duration,
    /// The longest pause.
    pub max_backoff: Duration,
    /// Lengthens the pauses by up to half, so that processes with different seeds do
    /// not retry in lockstep. 0 for no jitter.
    pub seed: u32,
}

/// Why a batch was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFault {
    /// One of its writes failed; the others may succeed without it.
    Write,
    /// The store is temporarily unavailable: locked by others, or connection lost.
    Transient,
    /// The store is unavailable until someone intervenes: disk full, I/O error,
    /// read-only.
    Permanent,
}

/// What to do with a batch that was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRecovery {
    /// Answer every write with the error. None of them is run again.
    Fail,
    /// Run every write in its own transaction, to find the one at fault. Deadlines
    /// stay.
    Split,
    /// Answer the expired writes, wait, and run the others again together.
    Retry {
        /// How long to wait: never past the earliest deadline of the remaining writes.
        after: Duration,
    },
}

impl RetryPolicy {
    /// Creates a policy with this time limit and default pauses.
    pub const fn new(time_limit: Duration) -> Self {
        Self {
            time_limit,
            initial_backoff: Duration::from_millis(5),
            max_backoff: Duration::from_millis(500),
            seed: 0,
        }
    }

    /// The deadline of a write submitted at this time.
    pub fn deadline(&self, submitted: Instant) -> Instant {
        submitted + self.time_limit
    }

    /// Decides what to do with a batch that was rolled back. `deadlines` are those of
    /// its writes; `failures` is the number of attempts that failed for a
    /// [`BatchFault::Transient`] reason, including this one.
    pub fn decide_recovery(
        &self,
        fault: BatchFault,
        deadlines: impl IntoIterator<Item = Instant>,
        failures: u32,
        now: Instant,
    ) -> BatchRecovery {
        let mut deadlines = deadlines.into_iter();
        match fault {
            BatchFault::Write => match deadlines.nth(1) {
                Some(_) => BatchRecovery::Split,
                None => BatchRecovery::Fail,
            },
            BatchFault::Permanent => BatchRecovery::Fail,
            BatchFault::Transient => {
                let pending = deadlines.filter(|at| !is_expired(*at, now));
                match pending.min() {
                    None => BatchRecovery::Fail,
                    Some(earliest) => BatchRecovery::Retry {
                        after: self.backoff(failures).min(earliest - now),
                    },
                }
            }
        }
    }

    /// The pause after this many failures.
    fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let pause = (self.initial_backoff * (1 << doublings)).min(self.max_backoff);
        let eighths = self.seed.wrapping_mul(0x9e37_79b9) >> 30;
        pause + pause * eighths / 8
    }
}

/// Whether a write with this deadline has expired: it must be answered without being
/// run.
pub fn is_expired(deadline: Instant, now: Instant) -> bool {
    now >= deadline
}

/// Removes the expired writes from a batch, in order. They must be answered, not run.
pub fn take_expired<T>(
    batch: &mut Vec<T>,
    deadline: impl Fn(&T) -> Instant,
    now: Instant,
) -> Vec<T> {
    batch
        .extract_if(.., |write| is_expired(deadline(write), now))
        .collect()
}

/// A write that is queued to be committed in a batch.
pub trait QueuedWrite {
    /// When it expires.
    fn deadline(&self) -> Instant;

    /// Whether the caller no longer waits for it.
    fn is_abandoned(&self) -> bool;
}

impl<W: QueuedWrite + ?Sized> QueuedWrite for Box<W> {
    fn deadline(&self) -> Instant {
        (**self).deadline()
    }

    fn is_abandoned(&self) -> bool {
        (**self).is_abandoned()
    }
}

/// The state machine of one batch: says what to do next, and does nothing itself. The
/// writers of the stores and their simulation run the same decisions.
#[derive(Debug)]
pub struct BatchRun<W> {
    policy: RetryPolicy,
    /// Parts of the batch, each for one transaction; the first is in progress.
    parts: VecDeque<Vec<W>>,
    /// The number of failed attempts at the first part.
    failures: u32,
    pending_pause: Option<Duration>,
}

/// What to do next with a batch.
#[derive(Debug)]
pub enum BatchAction<W> {
    /// Answer these without running them: they have expired.
    Expire(Vec<W>),
    /// Run these in one transaction, waiting for locks until `deadline` at most; then
    /// report with [`BatchRun::record_commit`] or [`BatchRun::record_failure`].
    Attempt {
        /// The writes.
        batch: Vec<W>,
        /// The earliest of their deadlines.
        deadline: Instant,
    },
    /// Wait.
    Pause(Duration),
    /// All writes have been answered.
    Done,
}

impl<W: QueuedWrite> BatchRun<W> {
    /// Creates a run for a batch that has not been attempted yet.
    pub fn new(policy: RetryPolicy, batch: Vec<W>) -> Self {
        Self {
            policy,
            parts: VecDeque::from([batch]),
            failures: 0,
            pending_pause: None,
        }
    }

    /// The next action. Abandoned writes are dropped without being run.
    pub fn next(&mut self, now: Instant) -> BatchAction<W> {
        if let Some(pause) = self.pending_pause.take() {
            return BatchAction::Pause(pause);
        }
        while let Some(part) = self.parts.front_mut() {
            let expired = take_expired(part, W::deadline, now);
            if !expired.is_empty() {
                return BatchAction::Expire(expired);
            }
            part.retain(|write| !write.is_abandoned());
            if let Some(deadline) = part.iter().map(W::deadline).min() {
                let batch = std::mem::take(part);
                return BatchAction::Attempt { batch, deadline };
            }
            self.finish_part();
        }
        BatchAction::Done
    }

    /// Records that the last attempt was committed.
    pub fn record_commit(&mut self) {
        self.finish_part();
    }

    /// Records that the last attempt was rolled back. Returns its writes if they fail
    /// with it; none of them is run again.
    #[must_use]
    pub fn record_failure(
        &mut self,
        batch: Vec<W>,
        fault: BatchFault,
        now: Instant,
    ) -> Option<Vec<W>> {
        self.failures += 1;
        let deadlines = batch.iter().map(W::deadline);
        let step = self
            .policy
            .decide_recovery(fault, deadlines, self.failures, now);
        match step {
            BatchRecovery::Fail => {
                self.finish_part();
                return Some(batch);
            }
            BatchRecovery::Split => {
                self.finish_part();
                for write in batch.into_iter().rev() {
                    self.parts.push_front(vec![write]);
                }
            }
            BatchRecovery::Retry { after } => {
                self.pending_pause = Some(after);
                if let Some(part) = self.parts.front_mut() {
                    *part = batch;
                }
            }
        }
        None
    }

    fn finish_part(&mut self) {
        self.parts.pop_front();
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn policy() -> RetryPolicy {
        RetryPolicy::new(LIMIT)
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_batch_is_split_only_if_one_write_is_at_fault() {
        let now = Instant::now();
        let two = [now + LIMIT, now + LIMIT];
        let decide = |fault, deadlines: &[Instant]| {
            policy().decide_recovery(fault, deadlines.iter().copied(), 1, now)
        };
        assert_eq!(decide(BatchFault::Write, &two), BatchRecovery::Split);
        assert_eq!(decide(BatchFault::Write, &two[..1]), BatchRecovery::Fail);
        assert_eq!(decide(BatchFault::Permanent, &two), BatchRecovery::Fail);
        let retried = decide(BatchFault::Transient, &two);
        assert!(
            matches!(retried, BatchRecovery::Retry { .. }),
            "{retried:?}"
        );
    }

    #[test]
    fn pauses_grow_and_never_reach_past_the_earliest_deadline() {
        let now = Instant::now();
        let deadlines = [now + seconds(50), now + Duration::from_millis(120)];
        let pauses: Vec<_> = (1..=10)
            .map(|failures| {
                match policy().decide_recovery(BatchFault::Transient, deadlines, failures, now) {
                    BatchRecovery::Retry { after } => after.as_millis(),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 120, 120, 120, 120, 120]);
    }

    #[test]
    fn seeds_spread_the_pauses_and_keep_them_in_bounds() {
        let pauses: Vec<_> = (0..64)
            .map(|seed| RetryPolicy { seed, ..policy() }.backoff(20))
            .collect();
        let longest = policy().max_backoff;
        assert!(
            pauses
                .iter()
                .all(|pause| (longest..=longest * 3 / 2).contains(pause))
        );
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }

    /// Simulates a writer over a store that stays locked, with a simulated clock: each
    /// attempt takes `attempt`, and at most 512 writes share an attempt.
    fn simulate_locked_store(
        start: Instant,
        arrivals: &[Duration],
        attempt: Duration,
    ) -> Vec<Duration> {
        let policy = policy();
        let mut now = start;
        let mut queue: Vec<Instant> = arrivals.iter().map(|at| start + *at).collect();
        let mut answered = Vec::new();
        while !queue.is_empty() {
            now = now.max(queue[0]);
            let waiting = queue.iter().take_while(|at| **at <= now).take(512).count();
            let mut batch: Vec<Instant> = queue.drain(..waiting).collect();
            let mut failures = 0;
            loop {
                for late in take_expired(&mut batch, |at| policy.deadline(*at), now) {
                    answered.push(now - late);
                }
                if batch.is_empty() {
                    break;
                }
                now += attempt;
                failures += 1;
                let deadlines = batch.iter().map(|at| policy.deadline(*at));
                match policy.decide_recovery(BatchFault::Transient, deadlines, failures, now) {
                    BatchRecovery::Retry { after } => now += after,
                    BatchRecovery::Fail => {}
                    BatchRecovery::Split => panic!("a locked store is nobody's fault"),
                }
            }
        }
        answered
    }

    #[test]
    fn everybody_who_waits_for_a_locked_store_is_answered_at_their_own_deadline() {
        let arrivals: Vec<_> = (0..24)
            .map(|n| Duration::from_millis(n * n * 250))
            .collect();
        let attempt = Duration::from_millis(3);
        let answered = simulate_locked_store(Instant::now(), &arrivals, attempt);
        assert_eq!(answered.len(), 24);
        for waited in answered {
            assert!((LIMIT..LIMIT + attempt * 2).contains(&waited), "{waited:?}");
        }
    }
}
