//! The writer thread: runs queued write jobs in batches, one transaction per batch.
//!
//! The thread blocks for one job, takes whatever else is queued, runs all of it in one
//! transaction and replies to every caller after the commit (group commit). There is no timer:
//! while one batch is being synced, the next one accumulates.
//!
//! [`RetryPolicy`] decides what happens to a failed batch: every job has one deadline, counted
//! from its submission; a batch is rerun job by job only if one of its jobs broke it; if the
//! store itself failed, every job gets that failure. A job whose caller has given up is not
//! run.
//!
//! Invariants: nothing is acknowledged before a sync that covers it, nor after the file has
//! been replaced; nothing is rerun after a commit.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rusqlite::Connection;
use throughline_store::{BatchAction, BatchFault, BatchRun, QueuedWrite, RetryPolicy, StoreError};
use tokio::sync::oneshot;

use crate::error::classify_fault;
use crate::file_identity::OpenFiles;
use crate::fsync::WalSync;
use crate::open::{Durability, Options};
use crate::tx::{SessionCache, Tx};
use crate::wal_checkpoint::WalCheckpointer;

/// Maximum number of jobs per commit: enough to share a sync, few enough to wait for.
const MAX_BATCH: usize = 512;

/// A unit of work to run in a write transaction.
trait Job: QueuedWrite + Send {
    /// Runs the job. An error from a job that changed nothing is that job's own refusal.
    fn run(&mut self, tx: &mut Tx<'_>) -> JobOutcome;
    /// Returns the error the job ended with, if it ran and failed.
    fn error(&self) -> Option<&StoreError>;
    /// Replies to the caller: with the job's own result once it is committed, or with the
    /// failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

enum JobOutcome {
    Done,
    Refused,
    /// The job failed after changing something, which must be rolled back.
    Failed,
}

struct WriteJob<T, F> {
    run: F,
    deadline: Instant,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> QueuedWrite for WriteJob<T, F> {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The caller has dropped its future.
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

impl<T, F> Job for WriteJob<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> JobOutcome {
        tx.changed = false;
        let result = (self.run)(tx);
        let outcome = match &result {
            Ok(_) => JobOutcome::Done,
            Err(_) if tx.changed => JobOutcome::Failed,
            Err(_) => JobOutcome::Refused,
        };
        self.result = Some(result);
        outcome
    }

    fn error(&self) -> Option<&StoreError> {
        self.result.as_ref()?.as_ref().err()
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let Self {
            run, result, reply, ..
        } = *self;
        // Released first: the caller may need sole ownership of what the closure shares.
        drop(run);
        let result = match (result, failure) {
            // Even a refusal may depend on changes that were not committed.
            (_, Some(failure)) => Err(failure),
            (Some(done), None) => done,
            (None, None) => Err(StoreError::Closed),
        };
        // The caller may have stopped waiting.
        let _ = reply.send(result);
    }
}

/// The write side of a store; its thread starts with the first write.
pub(crate) struct Writer {
    path: PathBuf,
    options: Options,
    policy: RetryPolicy,
    files: Arc<OpenFiles>,
    pub(crate) wal_sync: WalSync,
    thread: Mutex<ThreadState>,
}

enum ThreadState {
    NotStarted,
    Running(Sender<Box<dyn Job>>, JoinHandle<()>),
    Closed,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn new(
        path: PathBuf,
        options: Options,
        files: Arc<OpenFiles>,
        wal_sync: WalSync,
    ) -> Self {
        Self {
            path,
            options,
            policy: RetryPolicy {
                seed: std::process::id(),
                ..RetryPolicy::new(options.write_timeout)
            },
            files,
            wal_sync,
            thread: Mutex::new(ThreadState::NotStarted),
        }
    }

    /// Runs `work` in a transaction; returns once it is durable.
    ///
    /// `work` may run more than once if its batch has to be rolled back. If the returned future
    /// is dropped before `work` has run, it is not run at all.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(WriteJob {
            run: work,
            deadline: self.policy.deadline(Instant::now()),
            result: None,
            reply,
        }))?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut state = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let ThreadState::NotStarted = *state {
            *state = self.start()?;
        }
        match &*state {
            ThreadState::Running(jobs, _) => jobs.send(job).map_err(|_| StoreError::Closed),
            ThreadState::NotStarted | ThreadState::Closed => Err(StoreError::Closed),
        }
    }

    fn start(&self) -> Result<ThreadState, StoreError> {
        let (connection, wal) = connect(&self.path, self.options, &self.files)?;
        let mut thread = WriterThread {
            path: self.path.clone(),
            options: self.options,
            connection,
            wal,
            reconnect: false,
            policy: self.policy,
            files: Arc::clone(&self.files),
            wal_sync: self.wal_sync.clone(),
            sync_before_ack: self.options.durability == Durability::Full,
            may_be_unsynced: true,
            cache: SessionCache::default(),
        };
        let (jobs, waiting) = unbounded();
        let thread = std::thread::Builder::new()
            .name("tl-write".to_owned())
            .spawn(move || thread.run(&waiting))
            .map_err(|source| StoreError::Backend {
                during: "starting the writer",
                source: source.into(),
            })?;
        Ok(ThreadState::Running(jobs, thread))
    }

    /// Commits everything in progress and ends the thread.
    pub(crate) fn close(&self) {
        let mut state = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let ThreadState::Running(jobs, thread) =
            std::mem::replace(&mut *state, ThreadState::Closed)
        {
            drop(jobs);
            // A panic in the thread has already failed the callers that were waiting.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens the writing connection, to the same file that the store was opened with.
fn connect(
    path: &Path,
    options: Options,
    files: &OpenFiles,
) -> Result<(Connection, WalCheckpointer), StoreError> {
    files.check()?;
    let mut connection = crate::open::open_writer(path, options)?;
    // Opened by path: the file may have been replaced since the store was opened.
    files.check()?;
    let wal = WalCheckpointer::start(&mut connection, path, options.durability)?;
    Ok((connection, wal))
}

/// The state of the writer thread.
struct WriterThread {
    path: PathBuf,
    options: Options,
    connection: Connection,
    wal: WalCheckpointer,
    /// Whether the connection must be reopened first. A connection that was opened read-only
    /// stays so, even when the file becomes writable again.
    reconnect: bool,
    policy: RetryPolicy,
    files: Arc<OpenFiles>,
    wal_sync: WalSync,
    /// Whether an acknowledgement guarantees that the data is on disk.
    sync_before_ack: bool,
    /// Whether the log may hold commits of other processes that have not been synced.
    may_be_unsynced: bool,
    cache: SessionCache,
}

enum BatchFailure {
    /// A job failed after changing something.
    Job,
    /// The transaction itself failed.
    Store(StoreError),
}

impl BatchFailure {
    /// Returns whose fault it is, and the error for every job if the batch fails as a whole.
    fn classify(self) -> (BatchFault, Option<StoreError>) {
        match self {
            Self::Job => (BatchFault::Write, None),
            Self::Store(failure) => match classify_fault(&failure) {
                // Not caused by a particular job, so rerunning them one by one would not help.
                BatchFault::Write => (BatchFault::Permanent, Some(failure)),
                fault => (fault, Some(failure)),
            },
        }
    }
}

impl WriterThread {
    fn run(&mut self, waiting: &Receiver<Box<dyn Job>>) {
        for job in waiting {
            let mut batch = vec![job];
            batch.extend(waiting.try_iter().take(MAX_BATCH - 1));
            let committing = AssertUnwindSafe(|| self.run_batch(batch));
            if catch_unwind(committing).is_err() {
                // A bug in one job must not end all writing. The waiting callers notice that
                // their reply channel was dropped.
                self.cache.clear();
                self.roll_back();
            }
        }
    }

    /// Runs a batch to completion and replies to every caller in it.
    fn run_batch(&mut self, batch: Vec<Box<dyn Job>>) {
        let mut run = BatchRun::new(self.policy, batch);
        loop {
            match run.next(Instant::now()) {
                BatchAction::Done => return,
                BatchAction::Pause(pause) => std::thread::sleep(pause),
                BatchAction::Expire(expired) => {
                    let busy = StoreError::Busy {
                        during: "waiting to write",
                        seconds: self.policy.time_limit.as_secs(),
                    };
                    answer_all(expired, Some(&busy));
                }
                BatchAction::Attempt {
                    mut batch,
                    deadline,
                } => match self.attempt(&mut batch, deadline) {
                    Ok(()) => {
                        run.record_commit();
                        answer_all(batch, None);
                    }
                    Err(failure) => {
                        let (fault, failure) = failure.classify();
                        if let Some(batch) = run.record_failure(batch, fault, Instant::now()) {
                            // A job that broke the batch is answered with its own error.
                            answer_all(batch, failure.as_ref());
                        }
                    }
                },
            }
        }
    }

    /// Runs the whole batch in one transaction and commits it or rolls it back. On success
    /// everything it replies is durable.
    fn attempt(
        &mut self,
        batch: &mut [Box<dyn Job>],
        deadline: Instant,
    ) -> Result<(), BatchFailure> {
        if self.reconnect {
            let connected = connect(&self.path, self.options, &self.files);
            (self.connection, self.wal) = connected.map_err(BatchFailure::Store)?;
            self.reconnect = false;
            self.may_be_unsynced = true;
            self.cache.clear();
        }
        self.wal.take_has_written();
        let committed = self.run_transaction(batch, deadline);
        let overwritten = match committed {
            Ok(overwritten) => overwritten,
            Err(failure) => {
                self.cache.clear();
                self.roll_back();
                self.reconnect =
                    matches!(failure, BatchFailure::Store(StoreError::ReadOnly { .. }));
                return Err(failure);
            }
        };
        // From here on it is committed: it may be reported as failed but is never rerun.
        let sure = self.ensure_durable();
        if sure.is_err() {
            self.cache.clear();
        }
        self.wal.truncate_if_needed(&self.connection, overwritten);
        sure.map_err(BatchFailure::Store)
    }

    fn run_transaction(
        &mut self,
        batch: &mut [Box<dyn Job>],
        deadline: Instant,
    ) -> Result<bool, BatchFailure> {
        self.files.check().map_err(BatchFailure::Store)?;
        let mut tx =
            Tx::begin(&self.connection, &mut self.cache, deadline).map_err(BatchFailure::Store)?;
        self.may_be_unsynced |= tx.others_wrote;
        self.files
            .check_for_writing()
            .map_err(BatchFailure::Store)?;
        for job in batch.iter_mut().filter(|job| !job.is_abandoned()) {
            if let JobOutcome::Failed = job.run(&mut tx) {
                return Err(match job.error() {
                    Some(error) if classify_fault(error) != BatchFault::Write => {
                        BatchFailure::Store(error.duplicate())
                    }
                    _ => BatchFailure::Job,
                });
            }
        }
        tx.commit().map_err(BatchFailure::Store)
    }

    /// After a commit: ensures that the results are on disk, and in the file that other
    /// processes see.
    fn ensure_durable(&mut self) -> Result<(), StoreError> {
        if self.wal.take_has_written() {
            // The commit has synced the log, including everything that was in it before.
            self.may_be_unsynced = false;
        } else if self.may_be_unsynced && self.sync_before_ack {
            self.wal_sync.sync()?;
            self.may_be_unsynced = false;
        }
        self.files.check_for_writing()
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // If a rollback fails, SQLite undoes the transaction when the connection is next
            // used.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// Replies to every caller in a batch: with their own results, or with the shared failure.
fn answer_all(batch: Vec<Box<dyn Job>>, failure: Option<&StoreError>) {
    for job in batch {
        job.answer(failure.map(StoreError::duplicate));
    }
}
