//! Restores a backup into a store's file while other processes use it.
//!
//! The backup is copied beside the store, migrated to this version's schema and checked there
//! before the store is touched. SQLite's online backup then writes the pages into the live file
//! in one transaction: processes that have the store open keep the same file, and see either
//! the old content or the restored one.
//!
//! A store that can no longer be read is moved aside instead, unless another process has it
//! open.
//!
//! Invariant: before the store is replaced, its content is saved in a separate file, with
//! everything acknowledged until then.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use throughline_store::{CheckReport, ErrorKind, Finding, ProgressCallback, StoreError};

use crate::busy_handler::{DEFAULT_TIMEOUT, with_busy_deadline};
use crate::error::during;
use crate::file_holders::find_file_holders;
use crate::fsync::sync_folder;
use crate::migrate::{SchemaState, migrate, schema_state};
use crate::open::{Options, open_reader, open_writer, refuse_lost_main_file, side_file};
use crate::{backup, check};

/// Pages written between two progress reports.
const PAGES_PER_STEP: i32 = 2_000;

/// Fencing tokens of new leases start this far above those issued before the restore, so that a
/// write under an old lease is never accepted under a new one.
const LEASE_GAP: i64 = 1_000_000;

/// How long to wait for readers before truncating the log.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// How to restore a backup.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The file that the store's previous content is saved to. It must not exist.
    pub keep_as: PathBuf,
    /// Whether to restore a backup of a different store too.
    pub allow_other_store: bool,
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// Number of sessions restored.
    pub sessions: u64,
    /// Number of entries restored.
    pub entries: u64,
    /// Where the store's previous content is now, if it had any.
    pub replaced: Option<PathBuf>,
    /// Whether the content was replaced in the same file. Otherwise the old file was moved
    /// aside.
    pub in_place: bool,
}

/// Why a backup was not restored. The store is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The file is another program's database, or empty.
    #[error("{} is not a backup of a store", .file.display())]
    NotABackup {
        /// The file.
        file: PathBuf,
    },
    /// The backup is damaged.
    #[error("{} is damaged: {what}", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The backup and the store have no common history.
    #[error("{} is a backup of another store", .file.display())]
    OtherStore {
        /// The file.
        file: PathBuf,
    },
    /// The store cannot be read and must be moved aside, but other processes have it open.
    #[error(
        "{} cannot be read and must be replaced, but is open in {}",
        .file.display(),
        .holders.join(", ")
    )]
    InUse {
        /// The store's file.
        file: PathBuf,
        /// The processes that have it open.
        holders: Vec<String>,
    },
    /// Any other store failure.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RestoreError {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotABackup { .. } => ErrorKind::Invalid,
            Self::Damaged { .. } => ErrorKind::Damaged,
            Self::OtherStore { .. } | Self::InUse { .. } => ErrorKind::Conflict,
            Self::Store(error) => error.kind(),
        }
    }
}

/// Restores the backup `from` into the store at `store`, which other processes may be using.
///
/// The whole backup is checked first, which takes time in proportion to its size.
pub fn restore_backup(
    store: &Path,
    from: &Path,
    options: &RestoreOptions,
    progress: ProgressCallback<'_>,
) -> Result<RestoreReport, RestoreError> {
    if options.keep_as.exists() {
        return Err(restore_error(&options.keep_as, &"the file already exists").into());
    }
    let staged = StagedCopy::new(store);
    let checked = stage_backup(from, store, &staged.path, options, progress)?;
    let (sessions, entries) = (checked.sessions, checked.entries);
    let in_place = match overwrite_store(store, &staged.path, &options.keep_as, progress) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::Damaged => false,
        Err(error) => return Err(error.into()),
    };
    let replaced = if in_place {
        true
    } else {
        move_aside(store, &staged.path, &options.keep_as)?
    };
    Ok(RestoreReport {
        sessions,
        entries,
        replaced: replaced.then(|| options.keep_as.clone()),
        in_place,
    })
}

/// The checked copy of a backup; deleted on drop.
struct StagedCopy {
    path: PathBuf,
}

impl StagedCopy {
    fn new(store: &Path) -> Self {
        let staged = Self {
            path: side_file(store, ".restoring"),
        };
        // Left over from an interrupted restore.
        staged.remove();
        staged
    }

    fn remove(&self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let _ = std::fs::remove_file(side_file(&self.path, suffix));
        }
    }
}

impl Drop for StagedCopy {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Copies a backup, migrates the copy and checks it.
fn stage_backup(
    from: &Path,
    store: &Path,
    to: &Path,
    options: &RestoreOptions,
    progress: ProgressCallback<'_>,
) -> Result<CheckReport, RestoreError> {
    let damaged = |what: String| RestoreError::Damaged {
        file: from.to_owned(),
        what,
    };
    let not_ours = || RestoreError::NotABackup {
        file: from.to_owned(),
    };
    refuse_lost_main_file(from)?;
    let of_backup = |error: StoreError| match error {
        StoreError::DamagedStore { source: None, .. } => not_ours(),
        error if error.kind() == ErrorKind::Damaged => damaged(error.to_string()),
        error => error.into(),
    };
    {
        let mut connection = open_reader(from).map_err(of_backup)?;
        let snapshot = connection
            .transaction()
            .map_err(during("reading the backup"))
            .map_err(of_backup)?;
        if !is_store(&snapshot).map_err(of_backup)? {
            return Err(not_ours());
        }
        schema_state(&snapshot).map_err(of_backup)?;
        drop(snapshot);
        if let Some(Finding::File { what }) = check::check_file(&connection)?.into_iter().next() {
            return Err(damaged(what));
        }
        backup::copy_store(&connection, to).map_err(of_backup)?;
    }
    let mut copy = open_copy(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if schema_state(&copy)? == SchemaState::Outdated {
        migrate(&mut copy)?;
    }
    let checked = check::check(&copy, &|done, total| progress(done, total))?;
    let broken = checked.findings.iter().find_map(|finding| match finding {
        Finding::File { what } => Some(what.clone()),
        Finding::Entry {
            session, seq, what, ..
        } => Some(format!("entry {seq} of session {session}: {what}")),
        Finding::Derived { .. } | Finding::Blob { .. } => None,
    });
    if let Some(what) = broken {
        return Err(damaged(what));
    }
    // A store that cannot be read has no identity to compare.
    let live = refuse_lost_main_file(store)
        .and_then(|()| open_reader(store))
        .ok();
    let first_of_live = live.as_ref().and_then(|live| first_change(live).ok());
    if let (Some(Some(mine)), Some(theirs)) = (first_of_live, first_change(&copy)?)
        && mine != theirs
        && !options.allow_other_store
    {
        return Err(RestoreError::OtherStore {
            file: from.to_owned(),
        });
    }
    let given_out = live.as_ref().map_or(0, last_lease_number);
    clear_leases(&copy, given_out.max(last_lease_number(&copy)) + LEASE_GAP)?;
    Ok(checked)
}

/// Whether a file has the tables of a store.
fn is_store(connection: &Connection) -> Result<bool, StoreError> {
    connection
        .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'entry'")
        .and_then(|mut query| query.exists([]))
        .map_err(during("reading the backup"))
}

fn open_copy(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(during("opening the copy of the backup"))
}

/// Returns the first change ever recorded in a store, which identifies it.
fn first_change(connection: &Connection) -> Result<Option<(i64, String, String)>, StoreError> {
    connection
        .query_row(
            "SELECT position, owner, session FROM change ORDER BY position LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()
        .map_err(during("reading the first change"))
}

/// Returns the largest fencing token ever issued; 0 if it cannot be read.
fn last_lease_number(connection: &Connection) -> i64 {
    let seq = "SELECT seq FROM sqlite_sequence WHERE name = 'lease'";
    connection.query_row(seq, [], |row| row.get(0)).unwrap_or(0)
}

/// Deletes the leases stored in the backup; nobody holds them any more.
fn clear_leases(connection: &Connection, next: i64) -> Result<(), StoreError> {
    let failed = during("clearing the leases of the backup");
    connection
        .execute("DELETE FROM lease", [])
        .map_err(failed)?;
    let known = "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'lease'";
    if connection.execute(known, [next]).map_err(failed)? == 0 {
        let new = "INSERT INTO sqlite_sequence (name, seq) VALUES ('lease', ?1)";
        connection.execute(new, [next]).map_err(failed)?;
    }
    Ok(())
}

/// Replaces the live file's content in one transaction, after saving a copy of it.
fn overwrite_store(
    store: &Path,
    staged: &Path,
    keep_as: &Path,
    progress: ProgressCallback<'_>,
) -> Result<(), StoreError> {
    if !store.exists() && !side_file(store, "-wal").exists() {
        return Err(StoreError::DamagedStore {
            what: "the file does not exist".to_owned(),
            source: None,
        });
    }
    refuse_lost_main_file(store)?;
    let during_it = during("restoring the backup");
    let source = open_copy(staged, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut live = open_writer(store, Options::default())?;
    {
        let backup = Backup::new(&source, &mut live).map_err(during_it)?;
        // From the first page on, no other process can write.
        let deadline = Instant::now() + DEFAULT_TIMEOUT;
        copy_pages(&backup, 1, deadline)?;
        let kept = open_reader(store)?;
        backup::copy_store(&kept, keep_as)?;
        drop(kept);
        while !copy_pages(&backup, PAGES_PER_STEP, Instant::now() + DEFAULT_TIMEOUT)? {
            let pages = backup.progress();
            let total = u64::try_from(pages.pagecount).unwrap_or(0);
            let left = u64::try_from(pages.remaining).unwrap_or(0);
            progress(total.saturating_sub(left), total);
        }
    }
    // Replaced content must not stay in the log. If readers block this, it is truncated later.
    let _ = with_busy_deadline(Instant::now() + READER_TIMEOUT, || {
        live.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        })
    });
    Ok(())
}

/// Writes some pages; returns whether they were the last and everything is committed.
fn copy_pages(backup: &Backup<'_, '_>, pages: i32, deadline: Instant) -> Result<bool, StoreError> {
    loop {
        let stepped = with_busy_deadline(deadline, || backup.step(pages));
        match stepped.map_err(during("restoring the backup"))? {
            StepResult::Done => return Ok(true),
            StepResult::More => return Ok(false),
            _ if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                return Err(StoreError::Busy {
                    during: "restoring the backup",
                    seconds: DEFAULT_TIMEOUT.as_secs(),
                });
            }
        }
    }
}

/// Puts the copy in place of a store that cannot be read; returns whether there was one.
fn move_aside(store: &Path, staged: &Path, keep_as: &Path) -> Result<bool, RestoreError> {
    let holders = find_file_holders(store);
    if !holders.is_empty() {
        return Err(RestoreError::InUse {
            file: store.to_owned(),
            holders,
        });
    }
    let mut replaced = false;
    // The main file first: while only the log exists, nobody opens the store.
    for suffix in ["", "-wal"] {
        let (old, kept) = (side_file(store, suffix), side_file(keep_as, suffix));
        match std::fs::rename(&old, &kept) {
            Ok(()) => replaced = true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(restore_error(&old, &error).into()),
        }
    }
    let _ = std::fs::remove_file(side_file(store, "-shm"));
    if store.exists() {
        return Err(restore_error(store, &"another process created a new store meanwhile").into());
    }
    std::fs::rename(staged, store)
        .and_then(|()| sync_folder(store))
        .map_err(|error| restore_error(store, &error))?;
    Ok(replaced)
}

fn restore_error(path: &Path, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::Backend {
        during: "restoring the backup",
        source: format!("{}: {why}", path.display()).into(),
    }
}
