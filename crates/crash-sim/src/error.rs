//! Errors of recording and replaying traces.

use std::path::PathBuf;

/// Why a trace could not be recorded or replayed.
#[derive(Debug, thiserror::Error)]
pub enum CrashSimError {
    /// A file could not be read or written.
    #[error("{} cannot be used", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The recorder could not be compiled.
    #[error("the recorder cannot be compiled: {0}")]
    Compiler(String),
    /// The log does not have the recorder's format.
    #[error("the log is unreadable at byte {0}")]
    Log(usize),
    /// The program did something the model does not cover, so no state can be derived.
    #[error("record {number}: {what}")]
    Unsupported {
        /// The number of the record.
        number: usize,
        /// What the program did.
        what: String,
    },
}

impl CrashSimError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
