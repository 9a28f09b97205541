//! Runs reads on a small pool of threads, each with its own connection, started on demand.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};
use rusqlite::Connection;
use throughline_store::StoreError;
use tokio::sync::oneshot;

use crate::file_identity::OpenFiles;
use crate::migrate::refuse_newer_schema;
use crate::open::open_reader;

/// Enough threads to saturate the disk; further reads wait in the queue.
const MAX_THREADS: usize = 4;

type ReadJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// The pool of reader threads.
pub(crate) struct ReaderPool {
    path: PathBuf,
    files: Arc<OpenFiles>,
    jobs: Mutex<Option<Sender<ReadJob>>>,
    queue: Receiver<ReadJob>,
    /// The connection the store was opened with; the first thread takes it.
    first_connection: Mutex<Option<Connection>>,
    threads: AtomicUsize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    idle: Arc<AtomicUsize>,
}

impl fmt::Debug for ReaderPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ReaderPool {
    pub(crate) fn new(path: PathBuf, files: Arc<OpenFiles>, first: Connection) -> Self {
        let (jobs, queue) = unbounded();
        Self {
            path,
            files,
            jobs: Mutex::new(Some(jobs)),
            queue,
            first_connection: Mutex::new(Some(first)),
            threads: AtomicUsize::new(0),
            handles: Mutex::default(),
            idle: Arc::default(),
        }
    }

    /// Runs a read in a snapshot transaction on one of the pool's connections.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let files = Arc::clone(&self.files);
        self.send(Box::new(move |connection| {
            // One snapshot for the whole read, however many statements it has.
            let result = files.check().and_then(|()| run_in_snapshot(connection, f));
            // The caller may have stopped waiting.
            let _ = reply.send(result);
        }))?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs an operation that cannot be done inside a transaction.
    pub(crate) async fn read_without_transaction<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let files = Arc::clone(&self.files);
        self.send(Box::new(move |connection| {
            let _ = reply.send(files.check().and_then(|()| f(connection)));
        }))?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn send(&self, job: ReadJob) -> Result<(), StoreError> {
        self.start_thread_if_needed()?;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(job).map_err(|_| StoreError::Closed)
    }

    fn start_thread_if_needed(&self) -> Result<(), StoreError> {
        let threads = self.threads.load(Ordering::Relaxed);
        if threads >= MAX_THREADS || (threads > 0 && self.idle.load(Ordering::Relaxed) > 0) {
            return Ok(());
        }
        let first = self
            .first_connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut connection = match first {
            Some(connection) => connection,
            None => open_reader(&self.path)?,
        };
        let waiting = self.queue.clone();
        let idle = Arc::clone(&self.idle);
        idle.fetch_add(1, Ordering::Relaxed);
        let thread = std::thread::Builder::new()
            .name("tl-read".to_owned())
            .spawn(move || {
                for job in waiting {
                    idle.fetch_sub(1, Ordering::Relaxed);
                    // A panic in one read must not end the thread.
                    let _ = catch_unwind(AssertUnwindSafe(|| job(&mut connection)));
                    idle.fetch_add(1, Ordering::Relaxed);
                }
            })
            .map_err(|source| StoreError::Backend {
                during: "starting a reader",
                source: source.into(),
            });
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                self.idle.fetch_sub(1, Ordering::Relaxed);
                // The running threads serve it, later.
                return if threads > 0 { Ok(()) } else { Err(error) };
            }
        };
        self.threads.fetch_add(1, Ordering::Relaxed);
        self.handles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(thread);
        Ok(())
    }

    /// Finishes the queued reads and closes the connections.
    pub(crate) fn close(&self) {
        let jobs = self.jobs.lock();
        jobs.unwrap_or_else(PoisonError::into_inner).take();
        let first = self.first_connection.lock();
        first.unwrap_or_else(PoisonError::into_inner).take();
        let handles = self.handles.lock();
        for thread in handles.unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A panic in the thread has already failed the read that was waiting.
            let _ = thread.join();
        }
    }
}

fn run_in_snapshot<T>(
    connection: &mut Connection,
    f: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let transaction = connection
        .transaction()
        .map_err(crate::error::during("starting to read"))?;
    refuse_newer_schema(&transaction)?;
    f(&transaction)
}
