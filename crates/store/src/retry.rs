//! Decides when a queued write is given up, and what happens to a batch that failed.
//!
//! Both SQL stores commit queued writes in batches and use the same rules: every write has
//! one deadline, counted from its submission; a batch is split only when one of its writes is
//! at fault; and when the store itself fails, all of the batch fail together. Nothing here
//! reads a clock, sleeps or runs anything: `now` is an argument, so that a simulation can
//! drive the same decisions with a clock of its own.
//!
//! Invariant: a write that was answered with an error is not run afterwards.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a write may take, and how retries are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How long a write may take altogether: waiting in the queue, all attempts, all pauses.
    pub time_limit: Duration,
    /// The pause before the first retry; each later one is twice as long.
    pub initial_backoff: Duration,
    /// The longest pause.
    pub max_backoff: Duration,
    /// Lengthens the pauses by up to half, so that processes with different seeds do not
    /// retry in step. 0 for none.
    pub seed: u32,
}

/// Why a batch was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFault {
    /// One of its writes broke the transaction; the others may well succeed without it.
    Write,
    /// The store cannot serve now but may soon: locked by others, connection lost.
    Transient,
    /// The store cannot serve until somebody mends something: disk full, I/O error, read-only.
    Permanent,
}

/// What to do with a batch that was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRecovery {
    /// Answer every write with the failure. None of them is run again.
    Fail,
    /// Run every write in a transaction of its own, to find the one at fault. Deadlines stay.
    Split,
    /// Answer the expired writes, wait, and run the others again together.
    Retry {
        /// How long to wait: never past the earliest deadline of those that are run again.
        after: Duration,
    },
}

impl RetryPolicy {
    /// A policy with this time limit and ordinary pauses.
    pub const fn new(time_limit: Duration) -> Self {
        Self {
            time_limit,
            initial_backoff: Duration::from_millis(5),
            max_backoff: Duration::from_millis(500),
            seed: 0,
        }
    }

    /// When a write that was submitted at this moment is given up.
    pub fn deadline(&self, submitted: Instant) -> Instant {
        submitted + self.time_limit
    }

    /// Decides about a batch that was rolled back. `deadlines` are those of its writes,
    /// `failures` how many attempts at it have failed for a [`BatchFault::Passing`] reason,
    /// this one included.
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

    /// The pause after so many failures.
    fn backoff(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let pause = (self.initial_backoff * (1 << doublings)).min(self.max_backoff);
        let eighths = self.seed.wrapping_mul(0x9e37_79b9) >> 30;
        pause + pause * eighths / 8
    }
}

/// Whether a write with this deadline is given up: it must be answered without being run.
pub fn is_expired(deadline: Instant, now: Instant) -> bool {
    now >= deadline
}

/// Takes the expired writes out of a batch, in order. They are to be answered, not run.
pub fn take_expired<T>(
    batch: &mut Vec<T>,
    deadline: impl Fn(&T) -> Instant,
    now: Instant,
) -> Vec<T> {
    batch
        .extract_if(.., |write| is_expired(deadline(write), now))
        .collect()
}

/// A write that waits to be committed with others.
pub trait QueuedWrite {
    /// When it is given up.
    fn deadline(&self) -> Instant;

    /// Whether nobody waits for it any more.
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

/// One batch on its way to being committed or refused: says what to do next, and does nothing
/// itself. The writers of the stores and their simulation run the same decisions.
#[derive(Debug)]
pub struct BatchRun<W> {
    policy: RetryPolicy,
    /// Parts of the batch, each for one transaction; the first is under way.
    parts: VecDeque<Vec<W>>,
    /// How often the first part has failed.
    failures: u32,
    pending_pause: Option<Duration>,
}

/// What to do next with a batch.
#[derive(Debug)]
pub enum BatchAction<W> {
    /// Answer these without running them: their time is up.
    Expire(Vec<W>),
    /// Run these in one transaction and wait for locks until `deadline` at most; then report
    /// with [`BatchRun::committed`] or [`BatchRun::failed`].
    Attempt {
        /// The writes.
        batch: Vec<W>,
        /// The earliest of their deadlines.
        deadline: Instant,
    },
    /// Wait.
    Pause(Duration),
    /// Everybody has been answered.
    Done,
}

impl<W: QueuedWrite> BatchRun<W> {
    /// A batch that has not been tried yet.
    pub fn new(policy: RetryPolicy, batch: Vec<W>) -> Self {
        Self {
            policy,
            parts: VecDeque::from([batch]),
            failures: 0,
            pending_pause: None,
        }
    }

    /// What to do now. Writes that were abandoned are dropped without being run.
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

    /// The writes of the last attempt are committed.
    pub fn record_commit(&mut self) {
        self.finish_part();
    }

    /// The last attempt was rolled back. Answers with its writes if they fail with it, and
    /// none of them is run again.
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

    /// A writer over a store that stays locked, with a simulated clock: each attempt takes
    /// `attempt`, writes arrive as told, and at most 512 of them share an attempt.
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
