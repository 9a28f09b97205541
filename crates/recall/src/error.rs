//! Errors of the search index, and their kinds.
//!
//! None of them loses data: an index is derived from the store, and can be cleared and
//! rebuilt.

use std::path::PathBuf;

/// The kind of an error, which decides how a caller reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request is invalid.
    Invalid,
    /// The index is of another version or model, or cannot be read: clear and rebuild it.
    Rebuild,
    /// The index is temporarily unavailable.
    Unavailable,
}

/// An error of the search index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// The index was built by another version of this program.
    #[error("the index in {location} was built {found}; this program needs one built {expected}")]
    Stale {
        /// Where the index is.
        location: String,
        /// The format and model it was built with.
        found: String,
        /// The format and model this program needs.
        expected: String,
    },
    /// The index files cannot be read.
    #[error("the index in {} is damaged; delete it and it will be rebuilt", folder.display())]
    Damaged {
        /// Where the index is.
        folder: PathBuf,
        /// The error of the full-text engine.
        source: tantivy::TantivyError,
    },
    /// The full-text engine panicked while reading the index.
    #[error("the index cannot be read ({0}); delete it and it will be rebuilt")]
    Crashed(String),
    /// The index was built from changes that the store does not have.
    #[error("the index was built from entries that the store does not have")]
    Mismatch,
    /// A stored field of the index cannot be decoded.
    #[error("the index contains unreadable data; delete it and it will be rebuilt")]
    Unreadable(#[from] serde_json::Error),
    /// A file operation failed.
    #[error("the index failed while {during}")]
    Io {
        /// The operation that failed.
        during: &'static str,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The full-text engine failed.
    #[error("the index failed while {during}")]
    Engine {
        /// The operation that failed.
        during: &'static str,
        /// The error of the engine.
        source: tantivy::TantivyError,
    },
    /// The database that stores the index failed.
    #[error("the index failed while {during}")]
    Database {
        /// The operation that failed.
        during: &'static str,
        /// The error of the database.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process is writing to the index.
    #[error("the index in {} is being updated by another process", .0.display())]
    Busy(PathBuf),
}

impl RecallError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Stale { .. } | Self::Unreadable(_) | Self::Crashed(_) | Self::Mismatch => {
                ErrorKind::Rebuild
            }
            Self::Damaged { source, .. } | Self::Engine { source, .. } if is_damage(source) => {
                ErrorKind::Rebuild
            }
            Self::Damaged { .. }
            | Self::Io { .. }
            | Self::Engine { .. }
            | Self::Database { .. }
            | Self::Busy(_) => ErrorKind::Unavailable,
        }
    }
}

/// Returns whether the engine's error means damaged files rather than a full or failing disk.
/// Every error that is not clearly environmental counts as damage: an index can be rebuilt,
/// and a permanent error cannot be repaired in any other way.
fn is_damage(error: &tantivy::TantivyError) -> bool {
    use tantivy::TantivyError as E;
    use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
    match error {
        E::IoError(error)
        | E::LockFailure(LockError::IoError(error), _)
        | E::OpenDirectoryError(
            OpenDirectoryError::IoError {
                io_error: error, ..
            }
            | OpenDirectoryError::FailedToCreateTempDir(error),
        )
        | E::OpenReadError(OpenReadError::IoError {
            io_error: error, ..
        })
        | E::OpenWriteError(OpenWriteError::IoError {
            io_error: error, ..
        }) => !is_environmental(error),
        E::LockFailure(LockError::LockBusy, _) | E::SystemError(_) => false,
        _ => true,
    }
}

/// Returns whether an I/O error comes from the machine's current condition and says nothing
/// about the files.
fn is_environmental(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    // ENFILE and EMFILE (too many open files, in the system or in this process) have no
    // `ErrorKind`.
    let too_many_files = matches!(error.raw_os_error(), Some(23 | 24));
    too_many_files
        || matches!(
            error.kind(),
            K::PermissionDenied
                | K::ReadOnlyFilesystem
                | K::StorageFull
                | K::QuotaExceeded
                | K::FileTooLarge
                | K::OutOfMemory
                | K::Interrupted
                | K::WouldBlock
                | K::TimedOut
                | K::ResourceBusy
        )
}

/// Adds the operation during which the engine or the disk failed.
pub(crate) trait ErrorContext<T> {
    fn during(self, what: &'static str) -> Result<T, RecallError>;
}

impl<T> ErrorContext<T> for Result<T, tantivy::TantivyError> {
    fn during(self, during: &'static str) -> Result<T, RecallError> {
        self.map_err(|source| RecallError::Engine { during, source })
    }
}

impl<T> ErrorContext<T> for std::io::Result<T> {
    fn during(self, during: &'static str) -> Result<T, RecallError> {
        self.map_err(|source| RecallError::Io { during, source })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tantivy::TantivyError;
    use tantivy::directory::error::{OpenReadError, OpenWriteError};

    use super::*;

    #[test]
    fn a_machine_that_refuses_is_not_taken_for_damage() {
        let kind = |source| RecallError::Engine { during: "", source }.kind();
        let read = |kind: io::ErrorKind| {
            let error = OpenReadError::wrap_io_error(kind.into(), PathBuf::new());
            TantivyError::OpenReadError(error)
        };
        for refused in [
            read(io::ErrorKind::PermissionDenied),
            read(io::ErrorKind::StorageFull),
            TantivyError::from(io::Error::from(io::ErrorKind::StorageFull)),
            TantivyError::from(io::Error::from_raw_os_error(24)),
        ] {
            assert_eq!(kind(refused), ErrorKind::Unavailable);
        }
        for damage in [
            read(io::ErrorKind::InvalidData),
            read(io::ErrorKind::UnexpectedEof),
            TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(PathBuf::new())),
            TantivyError::OpenWriteError(OpenWriteError::FileAlreadyExists(PathBuf::new())),
        ] {
            assert_eq!(kind(damage), ErrorKind::Rebuild);
        }
    }
}
