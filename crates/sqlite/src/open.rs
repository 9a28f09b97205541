//! Opening a store: the file, its permissions, its connections.

use std::fs::{DirBuilder, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use throughline_store::StoreError;

use crate::error::during;
use crate::migrate::{State, migrate, state};
use crate::readers::Readers;
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How sure an acknowledgement is.
    pub durability: Durability,
}

/// Sessions in one SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) path: PathBuf,
    pub(crate) writer: Arc<Writer>,
    pub(crate) readers: Arc<Readers>,
}

impl SqliteStore {
    /// Opens a store, and makes it if there is none.
    ///
    /// A file in a folder that cannot be written opens all the same, for reading.
    pub fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, StoreError> {
        let path = path.into();
        make_file(&path)?;
        let mut connection = reader(&path)?;
        let snapshot = connection
            .transaction()
            .map_err(during("reading the schema's version"))?;
        let found = state(&snapshot)?;
        drop(snapshot);
        if found == State::Behind {
            let mut writer = writer(&path, options)?;
            patiently(
                |error| matches!(error, StoreError::Busy { .. }),
                || migrate(&mut writer),
            )?;
            drop(writer);
            connection = reader(&path)?;
        }
        Ok(Self {
            readers: Arc::new(Readers::new(path.clone(), connection)),
            writer: Arc::new(Writer::new(path.clone(), options)),
            path,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes the folder and the file, for their owner's eyes only.
fn make_file(path: &Path) -> Result<(), StoreError> {
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
        return Ok(());
    }
    let mut folders = DirBuilder::new();
    folders.recursive(true);
    let mut file = OpenOptions::new();
    file.write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folders.mode(0o700);
        // The database gives its side files the mode of the main one.
        file.mode(0o600);
    }
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        folders.create(folder).map_err(failed)?;
    }
    file.open(path).map_err(failed)?;
    Ok(())
}

/// Settings that every connection has.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_others))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Otherwise a statement is compiled anew for other values, in case another plan suits
    // them better: which costs more than any of these statements.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "trusted_schema", false)
}

/// Sleeps a little, differently each time, so that waiting processes do not keep step.
///
/// Short sleeps matter: a writer's turn takes about a millisecond, and the database's
/// own waiting soon sleeps a hundred.
fn wait_for_others(attempt: i32) -> bool {
    const MEAN_MICROS: u64 = 1_000;
    let attempt = u64::try_from(attempt).unwrap_or(0);
    if attempt * MEAN_MICROS > crate::error::PATIENCE * 1_000_000 {
        return false;
    }
    let spread =
        (attempt ^ u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    std::thread::sleep(Duration::from_micros(MEAN_MICROS / 2 + spread));
    true
}

/// Tries again while others are in the way, where the database does not wait by itself:
/// it answers at once when the file is just being made a store by several processes.
fn patiently<T, E>(
    is_busy: impl Fn(&E) -> bool,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let started = Instant::now();
    let is_early = || started.elapsed() < Duration::from_secs(crate::error::PATIENCE);
    let mut attempt = 0;
    loop {
        match work() {
            Err(error) if is_busy(&error) && is_early() && wait_for_others(attempt) => {
                attempt += 1;
            }
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked)
    )
}

/// A connection that reads.
pub(crate) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = during("opening the store");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        prepare(&mut connection)?;
        connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    match patiently(is_busy, open) {
        Ok(connection) => Ok(connection),
        Err(error) if cannot_share(&error) && !side_file(path, "-wal").exists() => {
            unshared_reader(path)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Whether the database could not make the files by which connections share it.
fn cannot_share(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(
        error.sqlite_error_code(),
        Some(CannotOpen | ReadOnly | PermissionDenied)
    )
}

/// A connection to a file in a folder that cannot be written. Nobody can be writing to
/// it from here, so it is read as it stands.
fn unshared_reader(path: &Path) -> Result<Connection, StoreError> {
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
    prepare(&mut connection).map_err(failed)?;
    Ok(connection)
}

/// A file beside the main one: `-wal` or `-shm`.
pub(crate) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A connection that writes.
pub(crate) fn writer(path: &Path, options: Options) -> Result<Connection, StoreError> {
    let failed = during("opening the store for writing");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    prepare(&mut connection).map_err(failed)?;
    let set = || -> rusqlite::Result<()> {
        // WAL is kept in the file once set; asking again is free.
        connection.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match options.durability {
            Durability::Full => "full",
            Durability::Normal => "normal",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "cache_size", -32_000)?;
        connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)
    };
    patiently(is_busy, set).map_err(failed)?;
    if connection.is_readonly("main").map_err(failed)? {
        return Err(StoreError::ReadOnly {
            during: "opening the store for writing",
            source: format!("{} may not be written", path.display()).into(),
        });
    }
    Ok(connection)
}

/// A connection that moves what was committed from the write-ahead log into the file.
pub(crate) fn mover(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    prepare(&mut connection)?;
    Ok(connection)
}
