//! Classifies database errors and converts them to [`StoreError`].

use std::time::Duration;

use deadpool_postgres::{PoolError, TimeoutType};
use throughline_store::{BatchFault, BoxError, StoreError};
use tokio_postgres::error::SqlState;

/// Why an operation failed, before it is decided whether to retry.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A refusal by the store itself.
    Store(StoreError),
    /// The database returned an error, or the connection was lost.
    Database {
        /// The operation in progress.
        during: &'static str,
        /// The driver's error.
        error: tokio_postgres::Error,
    },
    /// No connection was available.
    NoConnection {
        /// The operation in progress.
        during: &'static str,
        /// Why there was none.
        source: BoxError,
        /// Whether all pooled connections are in use.
        pool_exhausted: bool,
    },
    /// The connection was lost after a commit was sent and before its result arrived; the
    /// commit may or may not have succeeded.
    CommitLost {
        /// How it was lost.
        source: BoxError,
    },
}

/// Attaches the operation in progress to a database error.
pub(crate) fn during(during: &'static str) -> impl Fn(tokio_postgres::Error) -> Fault + Copy {
    move |error| Fault::Database { during, error }
}

/// Classifies an error received in place of a commit's result.
pub(crate) fn commit_failure(error: tokio_postgres::Error) -> Fault {
    if is_connection_lost(&error) {
        let source = Box::new(error);
        return Fault::CommitLost { source };
    }
    during("committing")(error)
}

/// A row holds something that this program does not write.
pub(crate) fn damaged(what: impl Into<String>, source: impl Into<BoxError>) -> StoreError {
    StoreError::DamagedStore {
        what: what.into(),
        source: Some(source.into()),
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// Converts a failure to get a pooled connection.
    pub(crate) fn from_pool_error(during: &'static str, error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Database { during, error },
            PoolError::Timeout(TimeoutType::Wait) => Self::NoConnection {
                during,
                source: "all connections to the database are in use".into(),
                pool_exhausted: true,
            },
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => Self::NoConnection {
                during,
                source: std::io::Error::new(
                    std::io::ErrorKind::TimedOut,
                    "the database does not respond",
                )
                .into(),
                pool_exhausted: false,
            },
            PoolError::Closed => Self::Store(StoreError::Closed),
            other => Self::NoConnection {
                during,
                source: other.into(),
                pool_exhausted: false,
            },
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database { error, .. } => error.code(),
            Self::Store(_) | Self::NoConnection { .. } | Self::CommitLost { .. } => None,
        }
    }

    /// Whether the database returned one of these codes.
    pub(crate) fn is_one_of(&self, codes: &[SqlState]) -> bool {
        self.code().is_some_and(|code| codes.contains(code))
    }

    /// Whether the connection is lost.
    pub(crate) fn is_connection_lost(&self) -> bool {
        match self {
            Self::Database { error, .. } => is_connection_lost(error),
            Self::CommitLost { .. } => true,
            Self::Store(_) | Self::NoConnection { .. } => false,
        }
    }

    /// Whether a commit was sent whose result is unknown.
    pub(crate) fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::CommitLost { .. })
    }

    /// Whether a lock held by another transaction was not released in time.
    pub(crate) fn is_locked(&self) -> bool {
        self.is_one_of(&[SqlState::LOCK_NOT_AVAILABLE])
    }

    /// What caused a batch to be rolled back.
    pub(crate) fn batch_fault(&self) -> BatchFault {
        match self {
            Self::Store(StoreError::Closed) => BatchFault::Permanent,
            Self::Store(_) => BatchFault::Write,
            Self::NoConnection { .. } | Self::CommitLost { .. } => BatchFault::Transient,
            Self::Database { .. } if self.is_transient() => BatchFault::Transient,
            Self::Database { error, .. } => match error.code() {
                Some(code) if affects_all_writes(code) => BatchFault::Permanent,
                Some(_) | None => BatchFault::Write,
            },
        }
    }

    /// The error to report after retrying for this long.
    pub(crate) fn into_final_error(self, after: Duration) -> StoreError {
        match self {
            Self::Database { during, .. } if self.is_locked() => StoreError::Busy {
                during,
                seconds: after.as_secs(),
            },
            other => other.into(),
        }
    }

    /// Whether a retry may succeed: a conflict with other transactions, or an unavailable
    /// database.
    pub(crate) fn is_transient(&self) -> bool {
        let in_the_way = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::TOO_MANY_CONNECTIONS,
            // Another transaction inserted the same row concurrently; a retry will find it.
            SqlState::UNIQUE_VIOLATION,
        ];
        self.is_connection_lost()
            || self.is_stale_statement()
            || self.is_locked()
            || self.is_one_of(&in_the_way)
    }

    /// Whether prepared statements are no longer valid: the schema has changed, or a proxy
    /// switched us to another server connection.
    pub(crate) fn is_stale_statement(&self) -> bool {
        let code = self.code();
        code == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
            || (code == Some(&SqlState::FEATURE_NOT_SUPPORTED)
                && matches!(self, Self::Database { error, .. }
                    if error.as_db_error().is_some_and(|e| e.message().contains("cached plan"))))
    }
}

/// Whether the database is temporarily unreachable: down, starting, or out of connections.
/// A wrong password or database name does not count.
pub fn is_unavailable(error: &StoreError) -> bool {
    let StoreError::Backend { source, .. } = error else {
        return matches!(error, StoreError::Busy { .. });
    };
    let database = source.downcast_ref::<tokio_postgres::Error>();
    source.is::<std::io::Error>()
        || database.is_some_and(|error| {
            is_connection_lost(error) || error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
        })
}

/// Whether every write would fail: disk full, no permission, read-only, or missing schema.
fn affects_all_writes(code: &SqlState) -> bool {
    const CLASSES: [&str; 7] = ["25", "28", "3D", "3F", "53", "58", "F0"];
    let gone = [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_FUNCTION];
    CLASSES.iter().any(|class| code.code().starts_with(class)) || gone.contains(code)
}

/// Whether an error means that the connection is lost.
pub(crate) fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    let ended = error.code().is_some_and(|code| {
        code.code().starts_with("08")
            || [
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ]
            .contains(code)
            // Idle session timeout.
            || code.code() == "57P05"
    });
    ended || error.is_closed() || (error.code().is_none() && is_io_error(error))
}

fn is_io_error(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            // A rejected certificate does not count as a lost connection.
            let why = io.get_ref();
            return why.is_none_or(|why| why.downcast_ref::<rustls::Error>().is_none());
        }
        cause = inner.source();
    }
    false
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        let (during, error) = match fault {
            Fault::Store(error) => return error,
            Fault::NoConnection {
                during,
                pool_exhausted: true,
                ..
            } => {
                return Self::Busy {
                    during,
                    seconds: crate::open::POOL_TIMEOUT.as_secs(),
                };
            }
            Fault::NoConnection { during, source, .. } => return Self::Backend { during, source },
            Fault::CommitLost { source } => return Self::OutcomeUnknown { source },
            Fault::Database { during, error } => (during, error),
        };
        let code = error.code().cloned();
        let source = Box::new(error);
        match code {
            Some(SqlState::DISK_FULL) => Self::DiskFull { during, source },
            Some(SqlState::READ_ONLY_SQL_TRANSACTION) => Self::ReadOnly { during, source },
            Some(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED) => Self::DamagedStore {
                what: format!("the database cannot be read while {during}"),
                source: Some(source),
            },
            _ => Self::Backend { during, source },
        }
    }
}
