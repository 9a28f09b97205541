//! Ensures that acknowledged data is on disk.
//!
//! SQLite syncs every commit that writes. An answer based on data that was already there is not
//! covered by that: another process may have died between writing to the write-ahead log and
//! syncing it, or may sync less often than this one, and SQLite then reads from the page cache
//! what a power cut would lose. Such an answer is preceded by a sync of the log.

use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_store::StoreError;

use crate::open::side_file;

/// Syncs the write-ahead log of one store.
#[derive(Clone, Debug)]
pub(crate) struct WalSync {
    wal: PathBuf,
    /// How many syncs have been done; tests read it.
    syncs: Arc<AtomicU64>,
}

impl WalSync {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            wal: side_file(path, "-wal"),
            syncs: Arc::default(),
        }
    }

    /// Makes everything in the log durable, and the log's directory entry.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        // SQLite takes no locks on the log file, so opening and closing it here is safe.
        let synced = match File::open(&self.wal) {
            Ok(wal) => wal.sync_data().and_then(|()| sync_folder(&self.wal)),
            // The log is empty.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        self.syncs.fetch_add(1, Ordering::Relaxed);
        synced.map_err(|source| StoreError::Backend {
            during: "syncing the write-ahead log",
            source: format!("{}: {source}", self.wal.display()).into(),
        })
    }

    /// Syncs when a store is opened, if the log is not empty and can be synced.
    pub(crate) fn sync_at_open(&self) -> Result<(), StoreError> {
        match std::fs::metadata(&self.wal) {
            Ok(wal) if wal.len() > 0 && File::open(&self.wal).is_ok() => self.sync(),
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

/// Makes the directory entry of a file durable.
pub(crate) fn sync_folder(of: &Path) -> std::io::Result<()> {
    let folder = match of.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        // Not every system can open or sync directories.
        Err(error) if cfg!(not(unix)) || error.kind() == ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Creates a folder and its parents, readable by their owner only, with durable directory
/// entries.
pub(crate) fn create_folders(folder: &Path) -> std::io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folders(parent)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    match builder.create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made?,
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use throughline_store::conformance::processes::{named_entry, session};
    use throughline_store::conformance::{header, run};
    use throughline_store::{Append, AppendKind, LogStore};

    use super::side_file;
    use crate::{Durability, Options, SqliteStore};

    fn open(path: &Path, durability: Durability) -> SqliteStore {
        let options = Options {
            durability,
            ..Options::default()
        };
        SqliteStore::open(path, options).unwrap()
    }

    async fn append(store: &SqliteStore, id: &str) -> AppendKind {
        let new = vec![named_entry(id, id)];
        let appended = store
            .append(&session("s"), Append::unconditional(new))
            .await;
        appended.unwrap().kind
    }

    async fn create(store: &SqliteStore) -> bool {
        let created = store.create(&session("s").owner, header("s")).await;
        created.unwrap().existed
    }

    /// Returns a copy of a store's files as left by a process that died before syncing, as the
    /// page cache still has them.
    fn files_after_crash(folder: &Path) -> std::path::PathBuf {
        let (before, after) = (folder.join("before.db"), folder.join("after.db"));
        let store = open(&before, Durability::Full);
        run(async {
            assert!(!create(&store).await);
            assert_eq!(append(&store, "one").await, AppendKind::Appended);
        });
        for suffix in ["", "-wal"] {
            std::fs::copy(side_file(&before, suffix), side_file(&after, suffix)).unwrap();
        }
        after
    }

    #[test]
    fn what_a_crash_left_is_synced_before_it_is_acknowledged_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = files_after_crash(folder.path());
        let store = open(&path, Durability::Full);
        let syncs = || store.writer.wal_sync.syncs();
        assert_eq!(syncs(), 1, "before anything is read");
        run(async {
            assert_eq!(append(&store, "one").await, AppendKind::Repeated);
            assert_eq!(syncs(), 2, "before the first answer");
            assert_eq!(append(&store, "one").await, AppendKind::Repeated);
            assert!(create(&store).await);
            assert_eq!(syncs(), 2, "and nothing since is unsynced");
        });
    }

    #[test]
    fn a_session_that_a_crash_left_is_synced_before_it_is_said_to_exist() {
        let folder = tempfile::tempdir().unwrap();
        let path = files_after_crash(folder.path());
        let store = open(&path, Durability::Full);
        run(async {
            assert!(create(&store).await);
            assert_eq!(store.writer.wal_sync.syncs(), 2);
        });
    }

    #[test]
    fn what_others_wrote_without_a_sync_is_synced_before_it_is_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let (sure, quick) = (
            open(&path, Durability::Full),
            open(&path, Durability::Normal),
        );
        let syncs = || sure.writer.wal_sync.syncs();
        run(async {
            create(&sure).await;
            assert_eq!(append(&sure, "mine").await, AppendKind::Appended);
            let before = syncs();
            assert_eq!(append(&quick, "theirs").await, AppendKind::Appended);
            assert_eq!(append(&sure, "theirs").await, AppendKind::Repeated);
            assert_eq!(syncs(), before + 1);
            assert_eq!(append(&sure, "theirs").await, AppendKind::Repeated);
            assert_eq!(syncs(), before + 1);
            // A store with weaker durability does not sync.
            assert_eq!(append(&quick, "mine").await, AppendKind::Repeated);
            assert_eq!(quick.writer.wal_sync.syncs(), 0);
        });
    }

    #[test]
    fn appends_need_no_sync_but_that_of_their_commit() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("sessions.db"), Durability::Full);
        run(async {
            create(&store).await;
            for n in 0..20 {
                append(&store, &format!("new-{n}")).await;
            }
            assert_eq!(store.writer.wal_sync.syncs(), 0);
        });
    }
}
