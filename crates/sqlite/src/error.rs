//! From the database's errors to ours: the one place where they meet.

use rusqlite::ErrorCode;
use throughline_store::StoreError;

/// How long a write waits for other processes, in seconds.
pub(crate) const PATIENCE: u64 = 60;

/// What a database error means, said of what was being done.
pub(crate) fn during(during: &'static str) -> impl Fn(rusqlite::Error) -> StoreError + Copy {
    move |error| {
        let code = error.sqlite_error_code();
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
                during,
                seconds: PATIENCE,
            },
            Some(ErrorCode::DiskFull) => StoreError::Full {
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

/// Something in a row is not what this program writes.
pub(crate) fn damaged(
    what: impl Into<String>,
    source: impl Into<throughline_store::BoxError>,
) -> StoreError {
    StoreError::DamagedStore {
        what: what.into(),
        source: Some(source.into()),
    }
}
