//! What can go wrong with an index, and what kind of wrong it is.
//!
//! Nothing here loses anything: an index is derived, and can be cleared and fed again.

use std::path::PathBuf;

/// What kind of failure an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// What was asked cannot be done as asked.
    Invalid,
    /// The index is of another version or model, or cannot be read: clear it and feed it again.
    Rebuild,
    /// The index cannot serve now.
    Unavailable,
}

/// What can go wrong with an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// Another version of this program made it.
    #[error("the index in {location} was found {found}, and this program needs {expected}")]
    Stale {
        /// Where it is.
        location: String,
        /// The format and model it was made with.
        found: String,
        /// The format and model needed.
        expected: String,
    },
    /// Its files cannot be read. It can be deleted and built again.
    #[error("the index in {} is damaged: it can be deleted and built again", folder.display())]
    Damaged {
        /// Where it is.
        folder: PathBuf,
        /// What is wrong with it.
        source: tantivy::TantivyError,
    },
    /// The engine panicked on what it read. It can be deleted and built again.
    #[error("the index cannot be read ({0}): it can be deleted and built again")]
    Crashed(String),
    /// It was made from changes that the store does not have.
    #[error("the index was made from entries that the store does not have")]
    Mismatch,
    /// Something stored in it cannot be read. It can be deleted and built again.
    #[error("the index holds something unreadable: it can be deleted and built again")]
    Unreadable(#[from] serde_json::Error),
    /// The disk refused.
    #[error("the index failed while {during}")]
    Io {
        /// While doing what.
        during: &'static str,
        /// What the disk said.
        source: std::io::Error,
    },
    /// The full-text engine refused.
    #[error("the index failed while {during}")]
    Engine {
        /// While doing what.
        during: &'static str,
        /// What it said.
        source: tantivy::TantivyError,
    },
    /// The database that the index is in refused.
    #[error("the index failed while {during}")]
    Database {
        /// While doing what.
        during: &'static str,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another process is feeding the index.
    #[error("the index in {} is being fed by another process", .0.display())]
    Busy(PathBuf),
}

impl RecallError {
    /// What kind of failure it is.
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

/// Whether the engine found its files wrong, rather than the disk full or refusing. Whatever
/// is not known to be the machine's fault is: an index can be rebuilt, and an error that
/// stays for good cannot be mended otherwise.
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

/// Whether the machine cannot do something now that says nothing about the files.
fn is_environmental(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    // Too many open files, in the system or in this process: they have no kind of their own.
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

/// Says what was being done when the engine or the disk failed.
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
