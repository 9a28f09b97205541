//! From the database's errors to ours: the one place where they meet.

use deadpool_postgres::PoolError;
use throughline_store::{BoxError, StoreError};
use tokio_postgres::error::SqlState;

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The store's own refusal.
    Store(StoreError),
    /// The database said no, or nothing any more.
    Database {
        /// What was being done.
        during: &'static str,
        /// What it said.
        error: tokio_postgres::Error,
    },
    /// There is no connection to be had.
    Unreached {
        /// What was being done.
        during: &'static str,
        /// Why not.
        source: BoxError,
        /// Whether all of our own are in use.
        exhausted: bool,
    },
}

/// What a database error was, said of what was being done.
pub(crate) fn during(during: &'static str) -> impl Fn(tokio_postgres::Error) -> Fault + Copy {
    move |error| Fault::Database { during, error }
}

/// Something in a row is not what this program writes.
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
    /// No connection from the pool.
    pub(crate) fn no_connection(during: &'static str, error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Database { during, error },
            PoolError::Timeout(_) => Self::Unreached {
                during,
                source: "all connections to the database are in use".into(),
                exhausted: true,
            },
            PoolError::Closed => Self::Store(StoreError::Closed),
            other => Self::Unreached {
                during,
                source: other.into(),
                exhausted: false,
            },
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database { error, .. } => error.code(),
            Self::Store(_) | Self::Unreached { .. } => None,
        }
    }

    /// Whether the database said one of these.
    pub(crate) fn is_one_of(&self, codes: &[SqlState]) -> bool {
        self.code().is_some_and(|code| codes.contains(code))
    }

    /// Whether the connection is lost, and with it the word of what became of a commit.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::Database { error, .. } => {
                let ended = error.code().is_some_and(|code| {
                    code.code().starts_with("08")
                        || [
                            SqlState::ADMIN_SHUTDOWN,
                            SqlState::CRASH_SHUTDOWN,
                            SqlState::CANNOT_CONNECT_NOW,
                            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                        ]
                        .contains(code)
                        // A connection that sat idle for too long.
                        || code.code() == "57P05"
                });
                ended || error.is_closed() || (error.code().is_none() && is_io(error))
            }
            Self::Store(_) | Self::Unreached { .. } => false,
        }
    }

    /// Whether trying again may help: others were in the way, or the database was away.
    pub(crate) fn passes(&self) -> bool {
        let in_the_way = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::TOO_MANY_CONNECTIONS,
            // Somebody else made the same thing at the same time: it is there now.
            SqlState::UNIQUE_VIOLATION,
        ];
        self.is_cut() || self.is_stale() || self.is_one_of(&in_the_way)
    }

    /// Whether statements prepared earlier no longer hold: the schema has changed, or a
    /// proxy has given us another server's connection.
    pub(crate) fn is_stale(&self) -> bool {
        let code = self.code();
        code == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
            || (code == Some(&SqlState::FEATURE_NOT_SUPPORTED)
                && matches!(self, Self::Database { error, .. }
                    if error.as_db_error().is_some_and(|e| e.message().contains("cached plan"))))
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            // A server whose certificate will not do is not one that was away.
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
            Fault::Unreached {
                during,
                exhausted: true,
                ..
            } => {
                return Self::Busy {
                    during,
                    seconds: crate::open::POOL_WAIT.as_secs(),
                };
            }
            Fault::Unreached { during, source, .. } => return Self::Backend { during, source },
            Fault::Database { during, error } => (during, error),
        };
        let code = error.code().cloned();
        let source = Box::new(error);
        match code {
            Some(SqlState::DISK_FULL) => Self::Full { during, source },
            Some(SqlState::READ_ONLY_SQL_TRANSACTION) => Self::ReadOnly { during, source },
            Some(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED) => Self::DamagedStore {
                what: format!("the database cannot be read while {during}"),
                source: Some(source),
            },
            _ => Self::Backend { during, source },
        }
    }
}
