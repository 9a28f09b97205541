//! Writes: one thread, and everything that waits in one commit.
//!
//! The thread blocks for one job, takes what else is waiting, runs all of it in one
//! transaction and answers everybody after the commit. There is no timer: while one
//! batch is being synced the next one gathers. If anything in a batch fails below the
//! level of a job's own refusal, the batch is rolled back and its jobs are run again
//! one by one, so that nobody pays for somebody else's failure.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rusqlite::Connection;
use throughline_store::StoreError;
use tokio::sync::oneshot;

use crate::open::Options;
use crate::tx::{Cache, Tx};
use crate::wal::Tending;

/// The most jobs in one commit: enough to share a sync, and short enough to wait for.
const BATCH: usize = 512;

/// Something to do in a transaction.
trait Job: Send {
    /// Does it. An error of a job that has changed nothing is the job's own refusal.
    fn run(&mut self, tx: &mut Tx<'_>) -> Outcome;
    /// Tells whoever asked, once the transaction is committed or has failed.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

enum Outcome {
    Done,
    Refused,
    /// It failed half-way: what it changed must be undone.
    Broken,
}

struct Work<T, F> {
    run: F,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Work<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Outcome {
        tx.changed = false;
        let result = (self.run)(tx);
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(_) if tx.changed => Outcome::Broken,
            Err(_) => Outcome::Refused,
        };
        self.result = Some(result);
        outcome
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let Self { run, result, reply } = *self;
        // Whoever asked may want back what they share with the work.
        drop(run);
        let result = match (result, failure) {
            // A refusal stands whether or not the others' work was committed.
            (Some(Err(refusal)), _) => Err(refusal),
            (_, Some(failure)) => Err(failure),
            (Some(done), None) => done,
            (None, None) => Err(StoreError::Closed),
        };
        // Whoever asked may have gone away: the work is done all the same.
        let _ = reply.send(result);
    }
}

/// The writing side of a store: its thread starts with the first write.
pub(crate) struct Writer {
    path: PathBuf,
    options: Options,
    thread: Mutex<State>,
}

enum State {
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
    pub(crate) fn new(path: PathBuf, options: Options) -> Self {
        Self {
            path,
            options,
            thread: Mutex::new(State::NotStarted),
        }
    }

    /// Runs `work` in a transaction; answers once it is durable.
    ///
    /// `work` may be run twice, if the batch it is in has to be undone.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Work {
            run: work,
            result: None,
            reply,
        }))?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut state = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::NotStarted = *state {
            *state = self.start()?;
        }
        match &*state {
            State::Running(jobs, _) => jobs.send(job).map_err(|_| StoreError::Closed),
            State::NotStarted | State::Closed => Err(StoreError::Closed),
        }
    }

    fn start(&self) -> Result<State, StoreError> {
        let mut connection = crate::open::writer(&self.path, self.options)?;
        let wal = Tending::start(&mut connection, &self.path)?;
        let (jobs, waiting) = unbounded();
        let thread = std::thread::Builder::new()
            .name("tl-write".to_owned())
            .spawn(move || run(&connection, &wal, &waiting))
            .map_err(|source| StoreError::Backend {
                during: "starting the writer",
                source: source.into(),
            })?;
        Ok(State::Running(jobs, thread))
    }

    /// Waits until everything under way is committed, and ends the thread.
    pub(crate) fn close(&self) {
        let mut state = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Running(jobs, thread) = std::mem::replace(&mut *state, State::Closed) {
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

fn run(connection: &Connection, wal: &Tending, waiting: &Receiver<Box<dyn Job>>) {
    let mut cache = Cache::default();
    let mut batch = Vec::with_capacity(BATCH);
    for job in waiting {
        batch.push(job);
        batch.extend(waiting.try_iter().take(BATCH - 1));
        let committing = AssertUnwindSafe(|| commit(connection, wal, &mut cache, &mut batch));
        if catch_unwind(committing).is_err() {
            // A fault of ours in one job must not end all writing. Whoever waited is told
            // by the loss of their answer.
            batch.clear();
            cache.clear();
            roll_back(connection);
        }
    }
}

/// Runs a batch to its end and answers everybody in it.
fn commit(
    connection: &Connection,
    wal: &Tending,
    cache: &mut Cache,
    batch: &mut Vec<Box<dyn Job>>,
) {
    if let Ok(()) = attempt(connection, wal, cache, batch) {
        for job in batch.drain(..) {
            job.answer(None);
        }
        return;
    }
    for job in batch.drain(..) {
        let mut alone = [job];
        let failure = match attempt(connection, wal, cache, &mut alone) {
            // The job's own error, where it broke, is its answer.
            Ok(()) | Err(Failure::Broken) => None,
            Err(Failure::Store(failure)) => Some(failure),
        };
        let [job] = alone;
        job.answer(failure);
    }
}

enum Failure {
    /// A job failed half-way.
    Broken,
    /// The transaction itself failed.
    Store(StoreError),
}

/// One transaction with all of the batch in it, committed or rolled back.
fn attempt(
    connection: &Connection,
    wal: &Tending,
    cache: &mut Cache,
    batch: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
    let done = (|| {
        let mut tx = Tx::begin(connection, cache).map_err(Failure::Store)?;
        for job in batch.iter_mut() {
            if let Outcome::Broken = job.run(&mut tx) {
                return Err(Failure::Broken);
            }
        }
        if tx.commit().map_err(Failure::Store)? {
            wal.empty(connection).map_err(Failure::Store)?;
        }
        Ok(())
    })();
    if done.is_err() {
        cache.clear();
        roll_back(connection);
    }
    done
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // Nothing better can be done about a rollback that fails: the database undoes
        // the transaction when the connection is next used.
        let _ = connection.execute_batch("ROLLBACK");
    }
}
