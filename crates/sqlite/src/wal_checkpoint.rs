//! Keeping the write-ahead log short.
//!
//! What was committed is moved from the log into the file every [`OFTEN`] pages. As a rule the
//! writer does that itself, as SQLite would: appends are small, and a second thread that syncs
//! the same disk costs them more than the waiting does. Whoever brings in much at once, and
//! has the next batch ready while the last is written, need not wait for it: after a commit of
//! [`MUCH`] pages a thread beside the writer's moves them. The log starts anew when somebody
//! writes at a moment when all of it has been moved: so under unceasing writes it grows, and
//! past [`LONG`] pages the writer moves what is left itself.

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

/// How many pages the log has before they are moved.
const CHECKPOINT_PAGES: i32 = 1_000;
/// How many pages of one commit are left to the thread beside the writer.
const LARGE_COMMIT_PAGES: i32 = 256;
/// How many pages the log has before the writer moves even those.
const MAX_WAL_PAGES: i32 = 8_192;

/// How long the log is waited for that readers still read, when it is to be emptied.
const READER_TIMEOUT: Duration = Duration::from_secs(5);

/// The writer's part in it.
#[derive(Debug)]
pub(crate) struct WalCheckpointer {
    lock: CheckpointLock,
    /// Whether a commit has written anything since somebody last asked.
    has_written: Arc<AtomicBool>,
    /// Whether the log still holds what was to be overwritten.
    needs_truncate: Cell<bool>,
}

/// Held by whoever moves pages: a second one at a time would be refused.
#[derive(Clone, Debug, Default)]
struct CheckpointLock(Arc<Mutex<()>>);

impl CheckpointLock {
    fn acquire(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WalCheckpointer {
    /// Keeps the log short that this connection writes, for as long as it is open.
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
        // Whatever goes wrong here, the transaction is committed, and the next one tries again.
        let after_commit = move |wal: &mut Wal, pages: i32| {
            noted.store(true, Ordering::Relaxed);
            // A log with fewer pages than before has started anew.
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

    /// Whether a commit has written anything since this was last asked.
    pub(crate) fn take_has_written(&self) -> bool {
        self.has_written.swap(false, Ordering::Relaxed)
    }

    /// After a commit: leaves nothing in the log if something was overwritten, since old
    /// versions of pages must not linger beside the file.
    ///
    /// The transaction is committed and must not be reported as failed, or even run again. If
    /// readers are in the way, or the disk fails, it is tried again after the next commit, and
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
        // The row says whether others were in the way, which is no error.
        let emptied = with_busy_deadline(Instant::now() + wait, || {
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                row.get::<_, i64>(0)
            })
        });
        if overwritten && let Err(error) = &emptied {
            tracing::warn!(
                %error,
                "what was removed is still in the write-ahead log; emptying it is tried again"
            );
        }
        self.needs_truncate.set(!matches!(emptied, Ok(0)));
    }
}

/// Moves pages on a thread of its own, which starts when it is first called.
struct CheckpointThread {
    path: PathBuf,
    durability: Durability,
    lock: CheckpointLock,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl CheckpointThread {
    /// Has what is in the log moved soon.
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
            // One call more than the one that waits would find nothing to do.
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
        // The writer does it, at longer intervals.
        return;
    };
    for () in calls {
        let _turn = turn.acquire();
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}
