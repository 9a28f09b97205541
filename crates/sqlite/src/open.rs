//! Opens a store: creates the file, sets its permissions and configures its connections.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use throughline_store::StoreError;

use crate::busy_handler::{handle_busy, retry_while_busy};
use crate::error::during;
use crate::file_identity::OpenFiles;
use crate::fsync::{WalSync, create_folders, sync_folder};
use crate::migrate::{SchemaState, migrate, schema_state};
use crate::permissions;
use crate::reader_pool::ReaderPool;
use crate::writer::Writer;

/// How durable an acknowledged write is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Synced to disk: survives a power failure.
    #[default]
    Full,
    /// Handed to the operating system: survives a crash of the program, not of the machine.
    Normal,
}

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How durable an acknowledged write is.
    pub durability: Durability,
    /// How long a write may take in total, counted from the call. After that it fails and is
    /// not performed.
    pub write_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            write_timeout: crate::busy_handler::DEFAULT_TIMEOUT,
        }
    }
}

/// A store of sessions in one SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) path: PathBuf,
    pub(crate) writer: Arc<Writer>,
    pub(crate) reader_pool: Arc<ReaderPool>,
}

impl SqliteStore {
    /// Opens a store, creating it if it does not exist.
    ///
    /// A file in a folder that cannot be written is opened for reading only.
    pub fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, StoreError> {
        let path = path.into();
        refuse_lost_main_file(&path)?;
        create_file(&path)?;
        let mut connection = open_reader(&path)?;
        let snapshot = connection
            .transaction()
            .map_err(during("reading the schema's version"))?;
        let found = schema_state(&snapshot)?;
        drop(snapshot);
        if found == SchemaState::Outdated {
            let mut writer = open_writer(&path, options)?;
            retry_while_busy(
                |error| matches!(error, StoreError::Busy { .. }),
                || migrate(&mut writer),
            )?;
            drop(writer);
            connection = open_reader(&path)?;
        }
        let files = Arc::new(OpenFiles::capture(&path)?);
        let wal = WalSync::new(&path);
        if options.durability == Durability::Full {
            wal.sync_at_open()?;
        }
        Ok(Self {
            reader_pool: Arc::new(ReaderPool::new(
                path.clone(),
                Arc::clone(&files),
                connection,
            )),
            writer: Arc::new(Writer::new(path.clone(), options, files, wal)),
            path,
        })
    }

    /// Returns the path of the store's main file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Creates the folder and the file, readable by their owner only.
fn create_file(path: &Path) -> Result<(), StoreError> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly {
                during: "creating the store's file",
                source: format!("{}: {source}", path.display()).into(),
            }
        }
        _ => StoreError::Backend {
            during: "creating the store's file",
            source: format!("{}: {source}", path.display()).into(),
        },
    };
    if path.exists() {
        permissions::restrict_to_owner(path);
        return Ok(());
    }
    let mut file = OpenOptions::new();
    file.write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // SQLite gives the files beside it the mode of the main file.
        file.mode(0o600);
    }
    if let Some(folder) = path.parent() {
        create_folders(folder).map_err(failed)?;
    }
    file.open(path).map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// Refuses a store whose main file is missing or empty while its write-ahead log has frames:
/// SQLite would discard the log as a leftover, and the data in it. Normal operation never
/// produces this state: the main file has a page before the log is created.
pub(crate) fn refuse_lost_main_file(path: &Path) -> Result<(), StoreError> {
    /// A log no longer than this has a header and no frames.
    const WAL_HEADER: u64 = 32;
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let wal = side_file(path, "-wal");
    // The log first: a process that is creating the store creates the main file before the log.
    if length(&wal) > WAL_HEADER && length(path) == 0 {
        return Err(StoreError::MainFileLost {
            file: path.display().to_string(),
            log: wal.display().to_string(),
        });
    }
    Ok(())
}

/// Applies the settings that every connection shares.
fn configure_connection(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(handle_busy))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Keeps prepared plans stable. Otherwise a statement may be recompiled for other parameter
    // values, which costs more than any of these statements.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "trusted_schema", false)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked)
    )
}

/// Opens a read-only connection.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = during("opening the store");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        configure_connection(&mut connection)?;
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    match retry_while_busy(is_busy, open) {
        Ok(connection) => Ok(connection),
        Err(error) if needs_rollback(&error) => {
            roll_back(path).map_err(failed)?;
            retry_while_busy(is_busy, open).map_err(failed)
        }
        Err(error) if is_sharing_failure(&error) && !side_file(path, "-wal").exists() => {
            open_immutable_reader(path)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Whether an interrupted transaction must be rolled back first, which only a writing
/// connection can do. A kill or power cut during the very first command leaves such a file: it
/// is not in WAL mode yet.
fn needs_rollback(error: &rusqlite::Error) -> bool {
    let error = error.sqlite_error();
    error.is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

/// Rolls back an interrupted transaction.
fn roll_back(path: &Path) -> rusqlite::Result<()> {
    let connection = open_checkpointer(path, Durability::Full)?;
    retry_while_busy(is_busy, || {
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))
    })?;
    Ok(())
}

/// Whether SQLite could not create the shared-memory file of the write-ahead log.
fn is_sharing_failure(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(
        error.sqlite_error_code(),
        Some(CannotOpen | ReadOnly | PermissionDenied)
    )
}

/// Opens a file in a folder that cannot be written. Nobody on this machine can be writing to
/// it, so it is opened as immutable.
fn open_immutable_reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = during("opening the store for reading only");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let escaped = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let address = format!("file:{escaped}?immutable=1");
    let mut connection = Connection::open_with_flags(address, flags).map_err(failed)?;
    configure_connection(&mut connection).map_err(failed)?;
    Ok(connection)
}

/// Returns the path of a file beside the main one: `-wal` or `-shm`.
pub(crate) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens a writing connection.
pub(crate) fn open_writer(path: &Path, options: Options) -> Result<Connection, StoreError> {
    let failed = during("opening the store for writing");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    configure_connection(&mut connection).map_err(failed)?;
    let set = || -> rusqlite::Result<()> {
        // WAL mode is stored in the file; setting it again costs nothing.
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match options.durability {
            Durability::Full => "full",
            Durability::Normal => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        set_full_fsync(&connection, options.durability)?;
        connection.pragma_update(None, "cache_size", -32_000)?;
        connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)
    };
    retry_while_busy(is_busy, set).map_err(failed)?;
    if connection.is_readonly("main").map_err(failed)? {
        return Err(StoreError::ReadOnly {
            during: "opening the store for writing",
            source: format!("{} is not writable", path.display()).into(),
        });
    }
    Ok(connection)
}

/// On macOS an ordinary sync leaves data in the drive's cache. Elsewhere this changes nothing.
fn set_full_fsync(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let full = durability == Durability::Full;
    connection.pragma_update(None, "fullfsync", full)?;
    connection.pragma_update(None, "checkpoint_fullfsync", full)
}

/// Opens the connection that checkpoints the write-ahead log into the file.
pub(crate) fn open_checkpointer(
    path: &Path,
    durability: Durability,
) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure_connection(&mut connection)?;
    set_full_fsync(&connection, durability)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acknowledged_as_on_the_disk_is_not_left_in_the_drive_on_macos() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        drop(SqliteStore::open(&path, Options::default()).unwrap());
        for (durability, expected) in [(Durability::Full, 1), (Durability::Normal, 0)] {
            let options = Options {
                durability,
                ..Options::default()
            };
            let connections = [
                open_writer(&path, options).unwrap(),
                open_checkpointer(&path, durability).unwrap(),
            ];
            for connection in connections {
                for pragma in ["fullfsync", "checkpoint_fullfsync"] {
                    let set: i64 = connection
                        .pragma_query_value(None, pragma, |row| row.get(0))
                        .unwrap();
                    assert_eq!(set, expected, "{pragma}");
                }
            }
        }
    }
}
