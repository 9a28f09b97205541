//! The errors of a store, and their kinds.

use serde::{Deserialize, Serialize};
use throughline_model::{DecodeError, Digest, EntryId, Key, Seq, SessionId, Timestamp, TokenId};

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The kind of an error, which maps to HTTP statuses and exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The requested item does not exist.
    NotFound,
    /// Another writer was faster, or the name is taken.
    Conflict,
    /// The request is invalid.
    Invalid,
    /// Stored data is damaged.
    Damaged,
    /// The store is temporarily unavailable. Nothing was changed, unless the error says
    /// that the outcome is unknown.
    Unavailable,
}

/// The errors of a store. No error loses acknowledged data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The owner has no such session.
    #[error("session {0} does not exist")]
    NoSuchSession(SessionId),
    /// The session is in the trash.
    #[error("session {0} is in the trash")]
    InTrash(SessionId),
    /// The session is not in the trash, but must be.
    #[error("session {0} is not in the trash")]
    NotInTrash(SessionId),
    /// The session was restored and trashed again in the meantime.
    #[error("session {id} was moved to the trash again at {at}")]
    TrashedAgain {
        /// The session.
        id: SessionId,
        /// When it was moved there.
        at: Timestamp,
    },
    /// The id is taken.
    #[error("session {0} already exists")]
    SessionExists(SessionId),
    /// The key is taken.
    #[error("key {key} is held by session {held_by}")]
    KeyTaken {
        /// The key.
        key: Key,
        /// The session that has it.
        held_by: SessionId,
    },
    /// Another writer appended first.
    #[error("session {id} moved: expected entry {expected}, found {found}")]
    Moved {
        /// The session.
        id: SessionId,
        /// The head that the writer expected.
        expected: Seq,
        /// The current head.
        found: Seq,
    },
    /// No such entry in the session.
    #[error("session {id} has no entry {seq}; its last entry is {head}")]
    NoSuchEntry {
        /// The session.
        id: SessionId,
        /// The requested entry.
        seq: Seq,
        /// The session's last entry.
        head: Seq,
    },
    /// Some, but not all, entry ids of an append are already stored.
    #[error("entry id {entry} is already used in session {id} by another append")]
    EntryIdReused {
        /// The session.
        id: SessionId,
        /// The entry id.
        entry: EntryId,
    },
    /// The append has no entries.
    #[error("there is nothing to append")]
    NothingToAppend,
    /// The owner has no such attachment.
    #[error("attachment {0} does not exist")]
    NoSuchBlob(Digest),
    /// No such token.
    #[error("token {0} does not exist")]
    NoSuchToken(TokenId),
    /// The token's id or hash is taken.
    #[error("token {0} already exists")]
    TokenExists(TokenId),
    /// The lease is held by another process.
    #[error("the lease {name:?} is held by {holder} until {until}, unless renewed")]
    LeaseHeld {
        /// The lease's name.
        name: String,
        /// The holder.
        holder: String,
        /// When it expires.
        until: Timestamp,
    },
    /// The lease was released, or not renewed in time.
    #[error(
        "the lease {name:?} was lost: it was not renewed in time, and another process may have \
         taken over"
    )]
    LeaseLost {
        /// The lease's name.
        name: String,
    },
    /// Too large to store.
    #[error("{what} of {bytes} bytes is too large: the maximum is {max} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// A stored entry is damaged.
    #[error("entry {seq} of session {id} is damaged")]
    Damaged {
        /// The session.
        id: SessionId,
        /// The entry.
        seq: Seq,
        /// The cause.
        source: DecodeError,
    },
    /// An entry is missing from the log.
    #[error("entry {seq} of the log is missing")]
    MissingEntry {
        /// Its number.
        seq: Seq,
    },
    /// Stored data besides the log is damaged.
    #[error("the store is damaged: {what}")]
    DamagedStore {
        /// What is damaged.
        what: String,
        /// The cause.
        source: Option<BoxError>,
    },
    /// The store was written by a later version.
    #[error(
        "the store was written by a later version of Throughline (schema {found}; this version supports {known})"
    )]
    SchemaTooNew {
        /// The store's schema.
        found: String,
        /// The newest schema that this version supports.
        known: String,
    },
    /// The store's file was deleted or replaced while it was open.
    #[error(
        "{file} was deleted or replaced while the store was open; reopen the store to continue"
    )]
    FileReplaced {
        /// The file.
        file: String,
    },
    /// The store's main file is missing or empty, but its write-ahead log is not.
    #[error(
        "{file} is missing or empty, but entries that were acknowledged are in {log}; opening the store would discard them"
    )]
    MainFileLost {
        /// The main file.
        file: String,
        /// The write-ahead log.
        log: String,
    },
    /// The store address is invalid.
    #[error("{url:?} is not a valid store address: {why}")]
    InvalidUrl {
        /// The address.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Other processes held its locks or connections for too long.
    #[error("the store was busy for {seconds} s while {during}")]
    Busy {
        /// The operation.
        during: &'static str,
        /// How long it was retried.
        seconds: u64,
    },
    /// The disk is full, or a size limit was reached.
    #[error("not enough disk space while {during}")]
    DiskFull {
        /// The operation.
        during: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// Out of memory.
    #[error("out of memory while {during}")]
    OutOfMemory {
        /// The operation.
        during: &'static str,
    },
    /// The store is read-only.
    #[error("cannot write to the store while {during}")]
    ReadOnly {
        /// The operation.
        during: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// A commit failed with an unknown outcome: the database connection was lost, or
    /// the disk failed.
    #[error(
        "the commit failed, and it is unknown whether this was stored; retrying with the same ids is safe"
    )]
    OutcomeUnknown {
        /// The cause.
        source: BoxError,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// This type of store does not support the operation.
    #[error("this kind of store cannot {0}")]
    Unsupported(&'static str),
    /// An error reported by a remote store, with its original message.
    #[error("{message}")]
    Remote {
        /// Its kind.
        kind: ErrorKind,
        /// Its message.
        message: String,
        /// The cause.
        source: Option<BoxError>,
    },
    /// Any other failure of the underlying storage.
    #[error("the store failed while {during}")]
    Backend {
        /// The operation.
        during: &'static str,
        /// The cause.
        source: BoxError,
    },
}

impl StoreError {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchSession(_)
            | Self::InTrash(_)
            | Self::NotInTrash(_)
            | Self::NoSuchEntry { .. }
            | Self::NoSuchBlob(_)
            | Self::NoSuchToken(_) => ErrorKind::NotFound,
            Self::SessionExists(_)
            | Self::KeyTaken { .. }
            | Self::Moved { .. }
            | Self::EntryIdReused { .. }
            | Self::TrashedAgain { .. }
            | Self::LeaseHeld { .. }
            | Self::LeaseLost { .. }
            | Self::TokenExists(_) => ErrorKind::Conflict,
            Self::NothingToAppend
            | Self::TooLarge { .. }
            | Self::InvalidUrl { .. }
            | Self::Unsupported(_) => ErrorKind::Invalid,
            Self::Damaged { .. }
            | Self::MissingEntry { .. }
            | Self::DamagedStore { .. }
            | Self::MainFileLost { .. } => ErrorKind::Damaged,
            Self::SchemaTooNew { .. }
            | Self::FileReplaced { .. }
            | Self::Busy { .. }
            | Self::DiskFull { .. }
            | Self::OutOfMemory { .. }
            | Self::ReadOnly { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Closed
            | Self::Backend { .. } => ErrorKind::Unavailable,
            Self::Remote { kind, .. } => *kind,
        }
    }

    /// Copies the error for another caller that shares it: all writes of a batch fail
    /// with the one error of their transaction.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Busy { during, seconds } => Self::Busy {
                during,
                seconds: *seconds,
            },
            Self::DiskFull { during, source } => Self::DiskFull {
                during,
                source: format_causes(&**source).into(),
            },
            Self::OutOfMemory { during } => Self::OutOfMemory { during },
            Self::ReadOnly { during, source } => Self::ReadOnly {
                during,
                source: format_causes(&**source).into(),
            },
            Self::OutcomeUnknown { source } => Self::OutcomeUnknown {
                source: format_causes(&**source).into(),
            },
            Self::SchemaTooNew { found, known } => Self::SchemaTooNew {
                found: found.clone(),
                known: known.clone(),
            },
            Self::FileReplaced { file } => Self::FileReplaced { file: file.clone() },
            Self::MainFileLost { file, log } => Self::MainFileLost {
                file: file.clone(),
                log: log.clone(),
            },
            Self::DamagedStore { what, source } => Self::DamagedStore {
                what: what.clone(),
                source: source.as_deref().map(|source| format_causes(source).into()),
            },
            Self::Backend { during, source } => Self::Backend {
                during,
                source: format_causes(&**source).into(),
            },
            other => Self::Remote {
                kind: other.kind(),
                message: other.to_string(),
                source: std::error::Error::source(other).map(|source| format_causes(source).into()),
            },
        }
    }
}

/// Formats an error and its causes on one line.
fn format_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
