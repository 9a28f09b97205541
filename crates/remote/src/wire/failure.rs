//! The wire form of a store's errors.
//!
//! Errors that a program may act on arrive as the same [`StoreError`] variant; the others keep
//! their kind and message.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};
use throughline_model::{DecodeError, Digest, EntryId, Key, Seq, SessionId, Timestamp, TokenId};
use throughline_store::{BoxError, ErrorKind, StoreError};

/// A failure of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "failure", rename_all = "snake_case")]
#[allow(missing_docs, reason = "as in `StoreError`")]
pub enum StoreFailure {
    NoSuchSession {
        id: SessionId,
    },
    InTrash {
        id: SessionId,
    },
    NotInTrash {
        id: SessionId,
    },
    TrashedAgain {
        id: SessionId,
        at: Timestamp,
    },
    SessionExists {
        id: SessionId,
    },
    KeyTaken {
        key: Key,
        held_by: SessionId,
    },
    Moved {
        id: SessionId,
        expected: Seq,
        found: Seq,
    },
    NoSuchEntry {
        id: SessionId,
        seq: Seq,
        head: Seq,
    },
    EntryIdReused {
        id: SessionId,
        entry: EntryId,
    },
    NothingToAppend,
    NoSuchBlob {
        digest: Digest,
    },
    NoSuchToken {
        id: TokenId,
    },
    TokenExists {
        id: TokenId,
    },
    EntryTooLarge {
        bytes: u64,
        max: u64,
    },
    BlobTooLarge {
        bytes: u64,
        max: u64,
    },
    Damaged {
        id: SessionId,
        seq: Seq,
        damage: EntryDamage,
    },
    Missing {
        seq: Seq,
    },
    LeaseHeld {
        name: String,
        holder: String,
        until: Timestamp,
    },
    LeaseLost {
        name: String,
    },
    /// Any other error, with the messages of its sources.
    Other {
        kind: ErrorKind,
        message: String,
        causes: Vec<String>,
    },
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "as in `DecodeError`")]
pub enum EntryDamage {
    Payload(String),
    Redacted,
    Digest,
}

/// How an entry is named in an error about its size.
const ENTRY_LABEL: &str = "an entry";
/// How an attachment is named in an error about its size.
const BLOB_LABEL: &str = "an attachment";

impl From<&StoreError> for StoreFailure {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NoSuchSession(id) => Self::NoSuchSession { id: id.clone() },
            StoreError::InTrash(id) => Self::InTrash { id: id.clone() },
            StoreError::NotInTrash(id) => Self::NotInTrash { id: id.clone() },
            StoreError::TrashedAgain { id, at } => Self::TrashedAgain {
                id: id.clone(),
                at: *at,
            },
            StoreError::SessionExists(id) => Self::SessionExists { id: id.clone() },
            StoreError::KeyTaken { key, held_by } => Self::KeyTaken {
                key: key.clone(),
                held_by: held_by.clone(),
            },
            StoreError::Moved {
                id,
                expected,
                found,
            } => Self::Moved {
                id: id.clone(),
                expected: *expected,
                found: *found,
            },
            StoreError::NoSuchEntry { id, seq, head } => Self::NoSuchEntry {
                id: id.clone(),
                seq: *seq,
                head: *head,
            },
            StoreError::EntryIdReused { id, entry } => Self::EntryIdReused {
                id: id.clone(),
                entry: *entry,
            },
            StoreError::NothingToAppend => Self::NothingToAppend,
            StoreError::NoSuchBlob(digest) => Self::NoSuchBlob { digest: *digest },
            StoreError::NoSuchToken(id) => Self::NoSuchToken { id: id.clone() },
            StoreError::TokenExists(id) => Self::TokenExists { id: id.clone() },
            StoreError::TooLarge {
                what: ENTRY_LABEL,
                bytes,
                max,
            } => Self::EntryTooLarge {
                bytes: *bytes,
                max: *max,
            },
            StoreError::TooLarge {
                what: BLOB_LABEL,
                bytes,
                max,
            } => Self::BlobTooLarge {
                bytes: *bytes,
                max: *max,
            },
            StoreError::Damaged { id, seq, source } => match EntryDamage::from_decode_error(source)
            {
                Some(damage) => Self::Damaged {
                    id: id.clone(),
                    seq: *seq,
                    damage,
                },
                None => Self::other(error),
            },
            StoreError::MissingEntry { seq } => Self::Missing { seq: *seq },
            StoreError::LeaseHeld {
                name,
                holder,
                until,
            } => Self::LeaseHeld {
                name: name.clone(),
                holder: holder.clone(),
                until: *until,
            },
            StoreError::LeaseLost { name } => Self::LeaseLost { name: name.clone() },
            other => Self::other(other),
        }
    }
}

impl StoreFailure {
    fn other(error: &StoreError) -> Self {
        let mut causes = Vec::new();
        let mut cause = error.source();
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        Self::Other {
            kind: error.kind(),
            message: error.to_string(),
            causes,
        }
    }
}

impl From<StoreFailure> for StoreError {
    fn from(failure: StoreFailure) -> Self {
        match failure {
            StoreFailure::NoSuchSession { id } => Self::NoSuchSession(id),
            StoreFailure::InTrash { id } => Self::InTrash(id),
            StoreFailure::NotInTrash { id } => Self::NotInTrash(id),
            StoreFailure::TrashedAgain { id, at } => Self::TrashedAgain { id, at },
            StoreFailure::SessionExists { id } => Self::SessionExists(id),
            StoreFailure::KeyTaken { key, held_by } => Self::KeyTaken { key, held_by },
            StoreFailure::Moved {
                id,
                expected,
                found,
            } => Self::Moved {
                id,
                expected,
                found,
            },
            StoreFailure::NoSuchEntry { id, seq, head } => Self::NoSuchEntry { id, seq, head },
            StoreFailure::EntryIdReused { id, entry } => Self::EntryIdReused { id, entry },
            StoreFailure::NothingToAppend => Self::NothingToAppend,
            StoreFailure::NoSuchBlob { digest } => Self::NoSuchBlob(digest),
            StoreFailure::NoSuchToken { id } => Self::NoSuchToken(id),
            StoreFailure::TokenExists { id } => Self::TokenExists(id),
            StoreFailure::EntryTooLarge { bytes, max } => Self::TooLarge {
                what: ENTRY_LABEL,
                bytes,
                max,
            },
            StoreFailure::BlobTooLarge { bytes, max } => Self::TooLarge {
                what: BLOB_LABEL,
                bytes,
                max,
            },
            StoreFailure::Damaged { id, seq, damage } => Self::Damaged {
                id,
                seq,
                source: damage.into(),
            },
            StoreFailure::Missing { seq } => Self::MissingEntry { seq },
            StoreFailure::LeaseHeld {
                name,
                holder,
                until,
            } => Self::LeaseHeld {
                name,
                holder,
                until,
            },
            StoreFailure::LeaseLost { name } => Self::LeaseLost { name },
            StoreFailure::Other {
                kind,
                message,
                causes,
            } => Self::Remote {
                kind,
                message,
                source: RemoteCause::chain(causes),
            },
        }
    }
}

impl EntryDamage {
    fn from_decode_error(error: &DecodeError) -> Option<Self> {
        match error {
            DecodeError::Payload(why) => Some(Self::Payload(why.to_string())),
            DecodeError::Redacted => Some(Self::Redacted),
            DecodeError::Digest => Some(Self::Digest),
            _ => None,
        }
    }
}

impl From<EntryDamage> for DecodeError {
    fn from(damage: EntryDamage) -> Self {
        match damage {
            EntryDamage::Payload(why) => {
                Self::Payload(<serde_json::Error as serde::de::Error>::custom(why))
            }
            EntryDamage::Redacted => Self::Redacted,
            EntryDamage::Digest => Self::Digest,
        }
    }
}

/// The source of an error on the server, as text.
#[derive(Debug)]
struct RemoteCause {
    text: String,
    source: Option<BoxError>,
}

impl RemoteCause {
    /// Builds a chain of sources, each caused by the next.
    fn chain(causes: Vec<String>) -> Option<BoxError> {
        causes.into_iter().rev().fold(None, |source, text| {
            let cause: BoxError = Box::new(Self { text, source });
            Some(cause)
        })
    }
}

impl fmt::Display for RemoteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for RemoteCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source: &(dyn Error + 'static) = self.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages of an error and its sources.
    fn error_chain(error: &StoreError) -> Vec<String> {
        let mut messages = Vec::new();
        let mut next: Option<&dyn Error> = Some(error);
        while let Some(error) = next {
            messages.push(error.to_string());
            next = error.source();
        }
        messages
    }

    fn one_of_each() -> Vec<StoreError> {
        let id = || "s".parse::<SessionId>().unwrap();
        let io = || -> BoxError { Box::new(std::io::Error::other("the disk is on fire")) };
        let payload = serde_json::from_str::<u8>("{").unwrap_err();
        let damaged = |source| StoreError::Damaged {
            id: id(),
            seq: Seq(3),
            source,
        };
        vec![
            StoreError::NoSuchSession(id()),
            StoreError::InTrash(id()),
            StoreError::NotInTrash(id()),
            StoreError::TrashedAgain {
                id: id(),
                at: Timestamp::UNIX_EPOCH,
            },
            StoreError::SessionExists(id()),
            StoreError::KeyTaken {
                key: "k".parse().unwrap(),
                held_by: id(),
            },
            StoreError::Moved {
                id: id(),
                expected: Seq(1),
                found: Seq(2),
            },
            StoreError::NoSuchEntry {
                id: id(),
                seq: Seq(9),
                head: Seq(2),
            },
            StoreError::EntryIdReused {
                id: id(),
                entry: EntryId::from_bytes([7; 16]),
            },
            StoreError::NothingToAppend,
            StoreError::NoSuchBlob(Digest::of(b"x")),
            StoreError::NoSuchToken(TokenId::mint([1; 8])),
            StoreError::TokenExists(TokenId::mint([1; 8])),
            StoreError::TooLarge {
                what: ENTRY_LABEL,
                bytes: 9,
                max: 8,
            },
            StoreError::TooLarge {
                what: BLOB_LABEL,
                bytes: 9,
                max: 8,
            },
            damaged(DecodeError::Payload(payload)),
            damaged(DecodeError::Redacted),
            damaged(DecodeError::Digest),
            damaged(DecodeError::Column("digest")),
            StoreError::MissingEntry { seq: Seq(4) },
            StoreError::LeaseHeld {
                name: "purge".to_owned(),
                holder: "a".to_owned(),
                until: Timestamp::UNIX_EPOCH,
            },
            StoreError::LeaseLost {
                name: "purge".to_owned(),
            },
            StoreError::DamagedStore {
                what: "a row".to_owned(),
                source: Some(io()),
            },
            StoreError::SchemaTooNew {
                found: "2".to_owned(),
                known: "1".to_owned(),
            },
            StoreError::FileReplaced {
                file: "sessions.db".to_owned(),
            },
            StoreError::MainFileLost {
                file: "sessions.db".to_owned(),
                log: "sessions.db-wal".to_owned(),
            },
            StoreError::OutcomeUnknown {
                source: "the connection was closed".into(),
            },
            StoreError::Busy {
                during: "appending",
                seconds: 5,
            },
            StoreError::DiskFull {
                during: "appending",
                source: io(),
            },
            StoreError::ReadOnly {
                during: "appending",
                source: io(),
            },
            StoreError::Closed,
            StoreError::Unsupported("fly"),
            StoreError::Backend {
                during: "reading",
                source: io(),
            },
        ]
    }

    #[test]
    fn an_error_arrives_with_its_kind_and_in_its_words() {
        for error in one_of_each() {
            let sent = serde_json::to_string(&StoreFailure::from(&error)).unwrap();
            let failure: StoreFailure = serde_json::from_str(&sent).unwrap();
            let arrived = StoreError::from(failure);
            assert_eq!(arrived.kind(), error.kind(), "{sent}");
            assert_eq!(error_chain(&arrived), error_chain(&error), "{sent}");
        }
    }

    #[test]
    fn an_error_that_a_program_acts_on_arrives_as_itself() {
        for error in one_of_each() {
            let arrived = StoreError::from(StoreFailure::from(&error));
            let itself = std::mem::discriminant(&arrived) == std::mem::discriminant(&error);
            let acted_on = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict);
            assert!(itself || !acted_on, "{error:?}");
        }
    }
}
