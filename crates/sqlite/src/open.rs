//! Opening a store: the file, its permissions, its connections.

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

/// How sure an acknowledgement is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// On the disk: it survives the machine's going down.
    #[default]
    Full,
    /// With the operating system: it survives the program's going down.
    Normal,
}

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How sure an acknowledgement is.
    pub durability: Durability,
    /// How long a write may take altogether, from when it was asked for. After that it is
    /// answered with an error, and not done.
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

/// Sessions in one SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) path: PathBuf,
    pub(crate) writer: Arc<Writer>,
    pub(crate) reader_pool: Arc<ReaderPool>,
}

impl SqliteStore {
    /// Opens a store, and makes it if there is none.
    ///
    /// A file in a folder that cannot be written opens all the same, for reading.
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

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes the folder and the file, for their owner's eyes only.
fn create_file(path: &Path) -> Result<(), StoreError> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly {
                during: "making the store's file",
                source: format!("{}: {source}", path.display()).into(),
            }
        }
        _ => StoreError::Backend {
            during: "making the store's file",
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
        // The database gives its side files the mode of the main one.
        file.mode(0o600);
    }
    if let Some(folder) = path.parent() {
        create_folders(folder).map_err(failed)?;
    }
    file.open(path).map_err(failed)?;
    sync_folder(path).map_err(failed)
}

/// Refuses a store whose main file is missing or empty while its write-ahead log has frames:
/// SQLite would take the log for a leftover and discard it, with all that is only in it. A
/// store is never like this by itself: the main file has a page before the log is made.
pub(crate) fn refuse_lost_main_file(path: &Path) -> Result<(), StoreError> {
    /// A log that is no longer has a header and nothing else.
    const WAL_HEADER: u64 = 32;
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let wal = side_file(path, "-wal");
    // The log first: whoever is making the store just now makes the main file before it.
    if length(&wal) > WAL_HEADER && length(path) == 0 {
        return Err(StoreError::MainFileLost {
            file: path.display().to_string(),
            log: wal.display().to_string(),
        });
    }
    Ok(())
}

/// Settings that every connection has.
fn configure_connection(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(handle_busy))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Otherwise a statement is compiled anew for other values, in case another plan suits
    // them better: which costs more than any of these statements.
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

/// A connection that reads.
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

/// Whether an interrupted transaction must be rolled back first, which only a connection that
/// writes can do. A kill or power cut during the very first command leaves such a file: it is not
/// in WAL mode yet.
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

/// Whether the database could not make the files by which connections share it.
fn is_sharing_failure(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(
        error.sqlite_error_code(),
        Some(CannotOpen | ReadOnly | PermissionDenied)
    )
}

/// A connection to a file in a folder that cannot be written. Nobody can be writing to
/// it from here, so it is read as it stands.
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

/// A file beside the main one: `-wal` or `-shm`.
pub(crate) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A connection that writes.
pub(crate) fn open_writer(path: &Path, options: Options) -> Result<Connection, StoreError> {
    let failed = during("opening the store for writing");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    configure_connection(&mut connection).map_err(failed)?;
    let set = || -> rusqlite::Result<()> {
        // WAL is kept in the file once set; asking again is free.
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
            source: format!("{} may not be written", path.display()).into(),
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

/// A connection that moves what was committed from the write-ahead log into the file.
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
