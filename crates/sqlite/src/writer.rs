//! Writes: one thread, and everything that waits in one commit.
//!
//! The thread blocks for one job, takes what else is waiting, runs all of it in one
//! transaction and answers everybody after the commit. There is no timer: while one
//! batch is being synced the next one gathers.
//!
//! What becomes of a batch that failed is decided by [`RetryPolicy`]: every job has one
//! deadline from when it was submitted; a batch is run again job by job only if one of them
//! broke it; if the store itself failed, all of them get that failure. A job whose caller has
//! given up is not run.
//!
//! Invariants: nothing is acknowledged before a sync that covers it, nor once the file has
//! been replaced; nothing is run again after a commit.

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

/// The most jobs in one commit: enough to share a sync, and short enough to wait for.
const MAX_BATCH: usize = 512;

/// Something to do in a transaction.
trait Job: QueuedWrite + Send {
    /// Does it. An error of a job that has changed nothing is the job's own refusal.
    fn run(&mut self, tx: &mut Tx<'_>) -> JobOutcome;
    /// The error it ended with, if it was run and did.
    fn error(&self) -> Option<&StoreError>;
    /// Tells whoever asked: its own result once that is committed, or the failure.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

enum JobOutcome {
    Done,
    Refused,
    /// It failed half-way: what it changed must be undone.
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

    /// Whoever asked was told that it failed, or left.
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
        // Whoever asked may want back what they share with the work.
        drop(run);
        let result = match (result, failure) {
            // What it came to, even a refusal, rests on what was not committed.
            (_, Some(failure)) => Err(failure),
            (Some(done), None) => done,
            (None, None) => Err(StoreError::Closed),
        };
        // Whoever asked may have left meanwhile.
        let _ = reply.send(result);
    }
}

/// The writing side of a store: its thread starts with the first write.
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

    /// Runs `work` in a transaction; answers once it is durable.
    ///
    /// `work` may be run more than once, if the batch it is in has to be undone. If the
    /// returned future is dropped before `work` has been run, it is not run at all.
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

    /// Waits until everything under way is committed, and ends the thread.
    pub(crate) fn close(&self) {
        let mut state = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let ThreadState::Running(jobs, thread) =
            std::mem::replace(&mut *state, ThreadState::Closed)
        {
            drop(jobs);
            // A panic in the thread has been told to whoever waited for an answer.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens the connection that writes, to the file that the store was opened with.
fn connect(
    path: &Path,
    options: Options,
    files: &OpenFiles,
) -> Result<(Connection, WalCheckpointer), StoreError> {
    files.check()?;
    let mut connection = crate::open::open_writer(path, options)?;
    // Opened by its path: it may have become another's since the store was opened.
    files.check()?;
    let wal = WalCheckpointer::start(&mut connection, path, options.durability)?;
    Ok((connection, wal))
}

/// What the thread that writes works with.
struct WriterThread {
    path: PathBuf,
    options: Options,
    connection: Connection,
    wal: WalCheckpointer,
    /// Whether the connection must be replaced first. One that could open a file for reading
    /// only stays like that, even once the file can be written again.
    reconnect: bool,
    policy: RetryPolicy,
    files: Arc<OpenFiles>,
    wal_sync: WalSync,
    /// Whether an acknowledgement means that it is on the disk.
    sync_before_ack: bool,
    /// Whether the log may hold what others committed and nobody has synced.
    may_be_unsynced: bool,
    cache: SessionCache,
}

enum BatchFailure {
    /// A job failed half-way.
    Job,
    /// The transaction itself failed.
    Store(StoreError),
}

impl BatchFailure {
    /// Whose fault it is, and what everybody in the batch is told if it fails as a whole.
    fn classify(self) -> (BatchFault, Option<StoreError>) {
        match self {
            Self::Job => (BatchFault::Write, None),
            Self::Store(failure) => match classify_fault(&failure) {
                // Nobody's in particular: there is no use in looking for whose.
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
                // A fault of ours in one job must not end all writing. Whoever waited is told
                // by the loss of their answer.
                self.cache.clear();
                self.roll_back();
            }
        }
    }

    /// Runs a batch to its end and answers everybody in it.
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
                            // The job's own error, where it broke, is its answer.
                            answer_all(batch, failure.as_ref());
                        }
                    }
                },
            }
        }
    }

    /// One transaction with all of the batch in it, committed or rolled back; everything it
    /// answers is durable.
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
        // From here on it is committed: it may be reported as failed, and is never run again.
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

    /// After a commit: sees to it that what is answered is on the disk, and in the file that
    /// everybody else sees.
    fn ensure_durable(&mut self) -> Result<(), StoreError> {
        if self.wal.take_has_written() {
            // The commit has synced the log, and all that was in it before.
            self.may_be_unsynced = false;
        } else if self.may_be_unsynced && self.sync_before_ack {
            self.wal_sync.sync()?;
            self.may_be_unsynced = false;
        }
        self.files.check_for_writing()
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // Nothing better can be done about a rollback that fails: the database undoes
            // the transaction when the connection is next used.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// Answers everybody in a batch: with their own results, or with the failure they share.
fn answer_all(batch: Vec<Box<dyn Job>>, failure: Option<&StoreError>) {
    for job in batch {
        job.answer(failure.map(StoreError::duplicate));
    }
}
