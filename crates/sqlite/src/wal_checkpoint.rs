//! Checkpoints the write-ahead log, to keep it short.
//!
//! Committed pages are moved from the log into the main file every [`CHECKPOINT_PAGES`] pages.
//! Usually the writer does that itself, as SQLite would: appends are small, and a second thread
//! syncing the same disk costs more than the wait. During bulk imports the next batch is ready
//! while the last one is written, so after a commit of [`LARGE_COMMIT_PAGES`] pages a
//! background thread moves them instead. The log restarts when a write finds that all of it has
//! been moved; under continuous writes it would grow, so past [`MAX_WAL_PAGES`] pages the
//! writer checkpoints the rest itself.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use throughline_store::StoreError;

use crate::busy_handler::with_busy_deadline;
use crate::error::during;
use crate::open::Durability;

/// Pages in the log that trigger a checkpoint.
const CHECKPOINT_PAGES: i32 = 1_000;
/// Pages in one commit from which the background thread does the checkpoint.
const LARGE_COMMIT_PAGES: i32 = 256;
/// Pages in the log from which the writer checkpoints even large commits itself.
const MAX_WAL_PAGES: i32 = 8_192;

/// How long to wait for readers before truncating the log.
const READER_TIMEOUT: Duration = Duration::from_secs(5);

/// The writer's handle to checkpointing.
#[derive(Debug)]
pub(crate) struct WalCheckpointer {
    lock: CheckpointLock,
    /// Whether a commit has written anything since this was last read.
    has_written: Arc<AtomicBool>,
    /// Whether the log still holds old versions of overwritten pages.
    needs_truncate: Cell<bool>,
}

/// Held while pages are moved: SQLite refuses a second checkpoint at a time.
#[derive(Clone, Debug, Default)]
struct CheckpointLock(Arc<Mutex<()>>);

impl CheckpointLock {
    fn acquire(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WalCheckpointer {
    /// Installs checkpointing on this connection, for as long as it is open.
    pub(crate) fn start(
        connection: &mut Connection,
        path: &Path,
        durability: Durability,
    ) -> Result<Self, StoreError> {
        let turn = CheckpointLock::default();
        let wrote = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&wrote);
        let mut mover = CheckpointThread {
            path: path.to_owned(),
            durability,
            lock: turn.clone(),
            thread: None,
        };
        let mut before = 0;
        // Errors are ignored here: the transaction is committed, and the next commit retries.
        let after_commit = move |wal: &mut Wal, pages: i32| {
            noted.store(true, Ordering::Relaxed);
            // A log with fewer pages than before has restarted.
            let written = if pages < before {
                pages
            } else {
                pages - before
            };
            before = pages;
            if pages >= CHECKPOINT_PAGES && written >= LARGE_COMMIT_PAGES && pages < MAX_WAL_PAGES {
                mover.wake();
            } else if pages >= CHECKPOINT_PAGES {
                let _turn = mover.lock.acquire();
                let _ = wal.checkpoint();
            }
            Ok(())
        };
        connection
            .wal_hook(Some(after_commit))
            .map_err(during("opening the store for writing"))?;
        Ok(Self {
            lock: turn,
            has_written: wrote,
            needs_truncate: Cell::new(false),
        })
    }

    /// Returns whether a commit has written anything since the last call.
    pub(crate) fn take_has_written(&self) -> bool {
        self.has_written.swap(false, Ordering::Relaxed)
    }

    /// Truncates the log after a commit that overwrote deleted data, since old versions of
    /// pages must not stay beside the main file.
    ///
    /// The transaction is committed and must be neither reported as failed nor run again. If
    /// readers block the truncation or the disk fails, it is retried after the next commit and
    /// when the store is closed.
    pub(crate) fn truncate_if_needed(&self, connection: &Connection, overwritten: bool) {
        if !overwritten && !self.needs_truncate.get() {
            return;
        }
        let wait = if overwritten {
            READER_TIMEOUT
        } else {
            Duration::ZERO
        };
        let _turn = self.lock.acquire();
        // The returned row says whether other connections blocked it, which is not an error.
        let emptied = with_busy_deadline(Instant::now() + wait, || {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, i64>(0)
            })
        });
        if overwritten && let Err(error) = &emptied {
            tracing::warn!(
                %error,
                "removed data is still in the write-ahead log; truncating it will be retried"
            );
        }
        self.needs_truncate.set(!matches!(emptied, Ok(0)));
    }
}

/// A background thread that moves pages; started by the first call.
struct CheckpointThread {
    path: PathBuf,
    durability: Durability,
    lock: CheckpointLock,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl CheckpointThread {
    /// Requests a checkpoint soon.
    fn wake(&mut self) {
        if self.thread.is_none() {
            let (calls, waiting) = bounded(1);
            let (path, turn) = (self.path.clone(), self.lock.clone());
            let durability = self.durability;
            let thread = std::thread::Builder::new().name("tl-move".to_owned());
            let Ok(thread) =
                thread.spawn(move || run_checkpoints(&path, durability, &turn, &waiting))
            else {
                return;
            };
            self.thread = Some((calls, thread));
        }
        if let Some((calls, _)) = &self.thread {
            // One pending request is enough.
            let _ = calls.try_send(());
        }
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        if let Some((calls, thread)) = self.thread.take() {
            drop(calls);
            let _ = thread.join();
        }
    }
}

fn run_checkpoints(
    path: &Path,
    durability: Durability,
    turn: &CheckpointLock,
    calls: &Receiver<()>,
) {
    let Ok(connection) = crate::open::open_checkpointer(path, durability) else {
        // The writer checkpoints instead, at longer intervals.
        return;
    };
    for () in calls {
        let _turn = turn.acquire();
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}
