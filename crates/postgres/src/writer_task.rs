//! Commits queued appends, all that are waiting in one transaction.
//!
//! The task waits for one append, takes what else is waiting, runs all of it in one
//! transaction and answers every caller after the commit. There is no timer: the next batch
//! builds up while the current one is being synced.
//!
//! [`RetryPolicy`] decides what happens to a failed batch: every append has one deadline
//! from when it was queued; a batch is split only if one of its appends broke it; if the
//! database itself failed, all of them share that failure. Appends to a session that
//! another transaction holds locked are set aside and retried from time to time, without
//! waiting for the lock, so that they hold up nothing else.
//!
//! Invariants: an append that was answered with an error is not run afterwards, and if an
//! earlier attempt may have been committed, the error says so. Appends to one session are
//! run in the order in which they were queued.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throughline_model::SessionRef;
use throughline_store::{BatchFault, BatchRecovery, StoreError, take_expired};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until, timeout, timeout_at};

use crate::append::WriterReply;
use crate::batch::{self, RowLocks, SessionCache};
use crate::error::Fault;
use crate::writer::{QueuedAppend, WriterContext};

/// The most appends in one commit: enough to share a sync, and few enough to keep it short.
const MAX_BATCH: usize = 512;

/// How much longer to wait for the result of a commit after the deadline: a short wait is
/// better than an unknown outcome.
const COMMIT_GRACE: Duration = Duration::from_secs(5);

/// Runs the appends of one store.
pub(crate) struct WriterTask {
    context: WriterContext,
    cache: SessionCache,
    blocked: BlockedAppends,
}

/// Appends to sessions that other transactions have locked, in the order in which they were
/// queued.
#[derive(Default)]
struct BlockedAppends {
    jobs: Vec<QueuedAppend>,
    /// Retries since one of them last succeeded.
    failures: u32,
    /// When to retry them.
    retry_at: Option<Instant>,
}

/// Appends to run together, and how to treat locked rows.
type Batch = (Vec<QueuedAppend>, RowLocks);

impl WriterTask {
    pub(crate) fn new(context: WriterContext) -> Self {
        Self {
            context,
            cache: SessionCache::default(),
            blocked: BlockedAppends::default(),
        }
    }

    /// Runs until the queue is closed and everything in it has been answered.
    pub(crate) async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<QueuedAppend>) {
        let mut batch = Vec::new();
        let mut closed = false;
        while !closed || !self.blocked.jobs.is_empty() {
            tokio::select! {
                received = waiting.recv_many(&mut batch, MAX_BATCH), if !closed => {
                    closed = received == 0;
                }
                () = self.blocked.wait_until_due() => {}
            }
            if self.blocked.is_due(Instant::now()) {
                let blocked = self.blocked.take();
                self.commit((blocked, RowLocks::Skip)).await;
            }
            let queued = std::mem::take(&mut batch);
            self.commit((queued, RowLocks::Wait)).await;
        }
    }

    /// Runs a batch to completion: every append in it is answered or set aside.
    async fn commit(&mut self, batch: Batch) {
        let mut batches = VecDeque::from([batch]);
        while let Some((mut batch, locks)) = batches.pop_front() {
            self.queue_behind_blocked(&mut batch);
            if batch.is_empty() {
                continue;
            }
            let several = batch.len() > 1;
            let next = self.run_batch(batch, locks).await;
            for batch in next.into_iter().rev() {
                batches.push_front(batch);
            }
            self.context.notifier.announce();
            if several {
                // Callers just answered may append again; let them join the next commit.
                tokio::task::yield_now().await;
            }
        }
        self.plan_retry();
    }

    /// Attempts a batch until it is committed, failed, set aside or split; returns the
    /// batches to run next.
    async fn run_batch(&mut self, mut batch: Vec<QueuedAppend>, mut locks: RowLocks) -> Vec<Batch> {
        let mut failures = 0;
        let mut last_failure = None;
        loop {
            self.answer_expired(&mut batch, last_failure.as_ref());
            batch.retain(|job| !job.is_abandoned());
            let Some(earliest) = batch.iter().map(|job| job.deadline).min() else {
                return Vec::new();
            };
            let fault = match self.attempt(&mut batch, locks, earliest).await {
                Ok(()) => return self.answer_settled(batch, locks),
                Err(fault) => fault,
            };
            if fault.is_locked() {
                match locks {
                    RowLocks::Wait => locks = RowLocks::Skip,
                    RowLocks::Skip if batch.len() == 1 => {
                        self.blocked.jobs.append(&mut batch);
                    }
                    RowLocks::Skip => {
                        if !self.set_blocked_aside(&mut batch) {
                            return split(batch, locks);
                        }
                    }
                }
                continue;
            }
            failures += 1;
            let policy = self.context.policy;
            let kind = fault.batch_fault();
            let failure = fault.into_final_error(policy.time_limit);
            let deadlines = batch.iter().map(|job| job.deadline);
            match policy.decide_recovery(kind, deadlines, failures, Instant::now()) {
                BatchRecovery::Fail => {
                    for job in batch {
                        job.give_up(Some(&failure), &policy);
                    }
                    return Vec::new();
                }
                BatchRecovery::Split => return split(batch, locks),
                BatchRecovery::Retry { after } => {
                    last_failure = Some(failure);
                    sleep(after).await;
                }
            }
        }
    }

    /// Runs the batch in one transaction. Gives up at the deadline, or a little later if
    /// the result of a commit is still pending.
    async fn attempt(
        &mut self,
        batch: &mut [QueuedAppend],
        locks: RowLocks,
        deadline: Instant,
    ) -> Result<(), Fault> {
        for job in batch.iter_mut() {
            job.outcome = None;
            job.blocked = false;
        }
        let commit_sent = AtomicBool::new(false);
        let done = {
            let attempt =
                batch::attempt_batch(&self.context, &mut self.cache, batch, locks, &commit_sent);
            let mut attempt = std::pin::pin!(attempt);
            match timeout_at(deadline.into(), &mut attempt).await {
                Ok(done) => done,
                Err(_) if !commit_sent.load(Ordering::Relaxed) => Err(Fault::NoConnection {
                    during: "appending",
                    source: "the database does not respond".into(),
                    pool_exhausted: false,
                }),
                Err(_) => match timeout(COMMIT_GRACE, attempt).await {
                    Ok(done) => done,
                    Err(_) => Err(Fault::CommitLost {
                        source: "the database does not respond".into(),
                    }),
                },
            }
        };
        if let Err(fault) = &done {
            self.cache.clear();
            for job in batch {
                // The commit's outcome is unknown: if the entries are found later, it
                // succeeded.
                if let Some(Ok(WriterReply::Written { kind: how, .. })) = job.outcome.take()
                    && fault.is_outcome_unknown()
                {
                    job.unconfirmed = Some(how);
                }
            }
        }
        done
    }

    /// Answers every append that the commit decided, and sets aside the blocked ones.
    /// Returns the undecided ones as the next batch.
    fn answer_settled(&mut self, batch: Vec<QueuedAppend>, locks: RowLocks) -> Vec<Batch> {
        let mut left = Vec::new();
        for job in batch {
            if job.outcome.is_some() {
                self.blocked.failures = 0;
                job.answer();
            } else if job.blocked {
                self.blocked.jobs.push(job);
            } else {
                left.push(job);
            }
        }
        vec![(left, locks)]
    }

    /// Answers the appends whose deadline has passed, in the batch and among the blocked.
    fn answer_expired(&mut self, batch: &mut Vec<QueuedAppend>, failure: Option<&StoreError>) {
        let now = Instant::now();
        let policy = self.context.policy;
        for job in take_expired(&mut self.blocked.jobs, |job| job.deadline, now) {
            job.give_up(None, &policy);
        }
        for job in take_expired(batch, |job| job.deadline, now) {
            job.give_up(failure, &policy);
        }
    }

    /// Sets aside all appends to sessions with blocked appends; returns whether there were
    /// any.
    fn set_blocked_aside(&mut self, batch: &mut Vec<QueuedAppend>) -> bool {
        let blocked = batch.iter().filter(|job| job.blocked);
        let sessions: HashSet<SessionRef> = blocked.map(|job| job.to.clone()).collect();
        let aside = batch.extract_if(.., |job| sessions.contains(&job.to));
        self.blocked.jobs.extend(aside);
        !sessions.is_empty()
    }

    /// Sets aside appends to sessions that have earlier appends set aside.
    fn queue_behind_blocked(&mut self, batch: &mut Vec<QueuedAppend>) {
        if self.blocked.jobs.is_empty() {
            return;
        }
        let blocked = self.blocked.jobs.iter();
        let sessions: HashSet<SessionRef> = blocked.map(|job| job.to.clone()).collect();
        let aside = batch.extract_if(.., |job| sessions.contains(&job.to));
        self.blocked.jobs.extend(aside);
    }

    /// Schedules the next retry of the blocked appends.
    fn plan_retry(&mut self) {
        self.answer_expired(&mut Vec::new(), None);
        self.blocked.jobs.retain(|job| !job.is_abandoned());
        let now = Instant::now();
        if self.blocked.jobs.is_empty() {
            self.blocked = BlockedAppends::default();
        } else if self.blocked.retry_at.is_none() {
            self.blocked.failures += 1;
            let deadlines = self.blocked.jobs.iter().map(|job| job.deadline);
            let failures = self.blocked.failures;
            let policy = self.context.policy;
            let step = policy.decide_recovery(BatchFault::Transient, deadlines, failures, now);
            self.blocked.retry_at = match step {
                BatchRecovery::Retry { after } => Some(now + after),
                BatchRecovery::Fail | BatchRecovery::Split => Some(now),
            };
        }
    }
}

impl BlockedAppends {
    /// Waits until the next retry; forever if nothing is blocked.
    async fn wait_until_due(&self) {
        match self.retry_at {
            Some(at) => sleep_until(at.into()).await,
            None => std::future::pending().await,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.retry_at.is_some_and(|at| at <= now)
    }

    /// Takes all blocked appends out to run them.
    fn take(&mut self) -> Vec<QueuedAppend> {
        self.retry_at = None;
        std::mem::take(&mut self.jobs)
    }
}

/// Splits a batch into one transaction per append, to find the one at fault.
fn split(batch: Vec<QueuedAppend>, locks: RowLocks) -> Vec<Batch> {
    batch.into_iter().map(|job| (vec![job], locks)).collect()
}
