//! What can go wrong in a store, and what kind of wrong it is.

use serde::{Deserialize, Serialize};
use throughline_model::{DecodeError, Digest, EntryId, Key, Seq, SessionId, Timestamp, TokenId};

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What kind of failure an error is: what HTTP statuses and exit codes are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// What was named does not exist.
    NotFound,
    /// Somebody else got there first.
    Conflict,
    /// What was asked cannot be done as asked.
    Invalid,
    /// What is stored cannot be trusted.
    Damaged,
    /// The store cannot serve now. Nothing was changed, unless the error says that the
    /// outcome is unknown.
    Unavailable,
}

/// What can go wrong in a store. Whatever it is, nothing acknowledged is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No such session for this owner.
    #[error("session {0} does not exist")]
    NoSuchSession(SessionId),
    /// The session is in the trash.
    #[error("session {0} is in the trash")]
    InTrash(SessionId),
    /// The session is not in the trash, where it would have to be.
    #[error("session {0} is not in the trash")]
    NotInTrash(SessionId),
    /// It was restored, and is in the trash anew since then.
    #[error("session {id} was put into the trash again at {at}")]
    TrashedAgain {
        /// The session.
        id: SessionId,
        /// Since when it is there.
        at: Timestamp,
    },
    /// The id is taken.
    #[error("session {0} exists already")]
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
        /// The head the writer believed in.
        expected: Seq,
        /// The head it has.
        found: Seq,
    },
    /// No such entry in the session.
    #[error("session {id} has no entry {seq}: its last is {head}")]
    NoSuchEntry {
        /// The session.
        id: SessionId,
        /// The entry asked for.
        seq: Seq,
        /// The last entry it has.
        head: Seq,
    },
    /// Entry ids of an append are partly known already.
    #[error("entry id {entry} is used already in session {id}, by another append")]
    EntryIdReused {
        /// The session.
        id: SessionId,
        /// The entry id.
        entry: EntryId,
    },
    /// An append of nothing.
    #[error("there is nothing to append")]
    NothingToAppend,
    /// No such attachment for this owner.
    #[error("there is no attachment {0}")]
    NoSuchBlob(Digest),
    /// No such token.
    #[error("there is no token {0}")]
    NoSuchToken(TokenId),
    /// A token's id or hash is taken.
    #[error("token {0} exists already")]
    TokenExists(TokenId),
    /// Somebody else is at work that is done by one at a time.
    #[error("the lease {name:?} is held by {holder} until {until}, unless renewed")]
    LeaseHeld {
        /// What is being done.
        name: String,
        /// Who does it.
        holder: String,
        /// When others may take over.
        until: Timestamp,
    },
    /// The right to do something alone was not renewed in time, or was given back.
    #[error(
        "the lease {name:?} was lost: it was not renewed in time, and another process may have \
         taken over"
    )]
    LeaseLost {
        /// What was being done.
        name: String,
    },
    /// Too large to store.
    #[error("{what} of {bytes} bytes is too large: at most {max} are stored")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// An entry that is stored cannot be trusted.
    #[error("entry {seq} of session {id} is damaged")]
    Damaged {
        /// The session.
        id: SessionId,
        /// The entry.
        seq: Seq,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// An entry that must be there is not.
    #[error("entry {seq} of the log is missing")]
    MissingEntry {
        /// Its number.
        seq: Seq,
    },
    /// What is stored beside the log cannot be trusted.
    #[error("the store is damaged: {what}")]
    DamagedStore {
        /// What is wrong.
        what: String,
        /// Why.
        source: Option<BoxError>,
    },
    /// The store was written by a later version.
    #[error(
        "the store is of a later version of Throughline (schema {found}, this version knows {known})"
    )]
    SchemaTooNew {
        /// The schema it has.
        found: String,
        /// The last schema this version knows.
        known: String,
    },
    /// The store's file was deleted, or another was put in its place, while it was open.
    #[error(
        "{file} was deleted or replaced while the store was open; nothing is written to it or read from it until it is opened again"
    )]
    FileReplaced {
        /// The file.
        file: String,
    },
    /// The main file of a store is missing or empty, and its write-ahead log is not.
    #[error(
        "{file} is missing or empty, but entries that were acknowledged are in {log}; opening the store would discard them"
    )]
    MainFileLost {
        /// The main file.
        file: String,
        /// The write-ahead log.
        log: String,
    },
    /// The address of a store means nothing.
    #[error("{url:?} is not the address of a store: {why}")]
    InvalidUrl {
        /// The address.
        url: String,
        /// Why not.
        why: String,
    },
    /// Others kept the store busy for too long.
    #[error("the store was kept busy by others for {seconds} s while {during}")]
    Busy {
        /// What was being done.
        during: &'static str,
        /// How long it was tried.
        seconds: u64,
    },
    /// The disk has no room, or a limit was reached.
    #[error("there is no room on the disk while {during}")]
    DiskFull {
        /// What was being done.
        during: &'static str,
        /// Why.
        source: BoxError,
    },
    /// There is not enough memory.
    #[error("there was not enough memory while {during}")]
    OutOfMemory {
        /// What was being done.
        during: &'static str,
    },
    /// The store may be read but not written.
    #[error("the store cannot be written while {during}")]
    ReadOnly {
        /// What was being done.
        during: &'static str,
        /// Why.
        source: BoxError,
    },
    /// A commit failed part-way: the connection to the database was lost, or the disk failed.
    #[error(
        "a commit failed part-way: whether this was stored is not known; repeating it with the same ids is safe"
    )]
    OutcomeUnknown {
        /// What happened.
        source: BoxError,
    },
    /// The store has been closed.
    #[error("the store has been closed")]
    Closed,
    /// What was asked makes no sense for this kind of store.
    #[error("this kind of store cannot {0}")]
    Unsupported(&'static str),
    /// Something that went wrong where the store is, told as it was told there.
    #[error("{message}")]
    Remote {
        /// What kind of failure it was.
        kind: ErrorKind,
        /// What was told.
        message: String,
        /// Why.
        source: Option<BoxError>,
    },
    /// Anything else below the store.
    #[error("the store failed while {during}")]
    Backend {
        /// What was being done.
        during: &'static str,
        /// Why.
        source: BoxError,
    },
}

impl StoreError {
    /// What kind of failure this is.
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

    /// The same failure once more, for another caller who shares it: all writes of a batch
    /// fail with the one failure of their transaction.
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

/// An error and what caused it, on one line.
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
