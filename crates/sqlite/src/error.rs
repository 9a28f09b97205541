//! Converts SQLite errors into [`StoreError`]s, in this one place.

use rusqlite::ErrorCode;
use throughline_store::{BatchFault, StoreError};

/// Returns a converter that maps a SQLite error to a [`StoreError`], given what was being done.
pub(crate) fn during(during: &'static str) -> impl Fn(rusqlite::Error) -> StoreError + Copy {
    move |error| {
        let code = error.sqlite_error_code();
        if is_out_of_memory(&error) {
            return StoreError::OutOfMemory { during };
        }
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
                during,
                seconds: crate::busy_handler::DEFAULT_TIMEOUT.as_secs(),
            },
            Some(ErrorCode::DiskFull) => StoreError::DiskFull {
                during,
                source: error.into(),
            },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly {
                during,
                source: error.into(),
            },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::DamagedStore {
                    what: format!("the file cannot be read while {during}"),
                    source: Some(error.into()),
                }
            }
            _ => StoreError::Backend {
                during,
                source: error.into(),
            },
        }
    }
}

/// Converts the error of a failed commit. After an I/O error its frames may be in the
/// write-ahead log: this process does not use them, but the next one that opens the store may
/// find the commit there.
pub(crate) fn commit_failure(error: rusqlite::Error) -> StoreError {
    let is_io_error = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
    if is_io_error && !is_out_of_memory(&error) {
        return StoreError::OutcomeUnknown {
            source: error.into(),
        };
    }
    during("committing")(error)
}

/// Classifies a failure that broke a transaction: as the store's own, permanent or transient,
/// or as the fault of a single write.
pub(crate) fn classify_fault(failure: &StoreError) -> BatchFault {
    match failure {
        StoreError::Busy { .. } => BatchFault::Transient,
        StoreError::DiskFull { .. }
        | StoreError::OutOfMemory { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::SchemaTooNew { .. }
        | StoreError::FileReplaced { .. }
        | StoreError::OutcomeUnknown { .. }
        | StoreError::Closed => BatchFault::Permanent,
        StoreError::Backend { source, .. } if affects_all_writes(&**source) => {
            BatchFault::Permanent
        }
        _ => BatchFault::Write,
    }
}

fn affects_all_writes(source: &(dyn std::error::Error + 'static)) -> bool {
    let code = source
        .downcast_ref::<rusqlite::Error>()
        .and_then(rusqlite::Error::sqlite_error_code);
    matches!(
        code,
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

fn is_out_of_memory(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => {
            error.code == ErrorCode::OutOfMemory
                || error.extended_code == rusqlite::ffi::SQLITE_IOERR_NOMEM
        }
        _ => false,
    }
}

/// Whether a failure is no evidence of damage: out of memory, or the store could not be used. A
/// disk read error is evidence of damage.
pub(crate) fn is_environment_failure(failure: &StoreError) -> bool {
    match failure {
        StoreError::Backend { source, .. } => {
            let code = source
                .downcast_ref::<rusqlite::Error>()
                .and_then(rusqlite::Error::sqlite_error_code);
            code == Some(ErrorCode::CannotOpen)
        }
        StoreError::Busy { .. }
        | StoreError::DiskFull { .. }
        | StoreError::OutOfMemory { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::SchemaTooNew { .. }
        | StoreError::FileReplaced { .. }
        | StoreError::Closed => true,
        _ => false,
    }
}

/// Reports a value in a row that this program would not have written.
pub(crate) fn damaged(
    what: impl Into<String>,
    source: impl Into<throughline_store::BoxError>,
) -> StoreError {
    StoreError::DamagedStore {
        what: what.into(),
        source: Some(source.into()),
    }
}
