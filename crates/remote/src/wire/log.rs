//! Logs.

use serde::{Deserialize, Serialize};
use throughline_model::{
    Birth, Digest, EntryId, NewEntry, Record, Seq, SessionId, StoredEntry, Timestamp,
};
use throughline_store::{Created, Expect, Fence, How, OnConflict, Read, StoreError};

use super::Call;

/// Makes a session, or finds the one that holds the birth's key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// How it is born.
    pub birth: Birth,
}

impl Call for Create {
    const NAME: &'static str = "create";
    type Answer = Created;
}

/// Appends to a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The head the writer believes in.
    pub expect: Expect,
    /// What to do if it is another.
    pub on_conflict: OnConflict,
    /// What to append.
    pub entries: Vec<Sent>,
    /// The lease it is appended under, if any.
    pub fence: Option<Fence>,
}

impl Call for Append {
    const NAME: &'static str = "append";
    type Answer = Placed;
}

/// An entry to append, its payload as it is to be stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// Its id.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// Everything else, as JSON.
    pub payload: String,
}

impl Sent {
    /// What is to be appended. Refused if this program would store something else than what
    /// was sent: digests are over the payload's bytes.
    pub fn opened(self) -> Result<NewEntry, StoreError> {
        let refused = |source: throughline_store::BoxError| StoreError::Elsewhere {
            kind: throughline_store::ErrorKind::Invalid,
            message: format!("entry {} cannot be stored as it was sent", self.id),
            source: Some(source),
        };
        let entry = StoredEntry {
            seq: Seq::ZERO,
            id: self.id,
            at: self.at,
            digest: throughline_model::GENESIS,
            payload: self.payload.clone(),
        }
        .decode()
        .map_err(|error| refused(error.into()))?;
        let new = NewEntry {
            id: entry.id,
            at: entry.at,
            external_id: entry.external_id,
            author: entry.author,
            body: entry.body,
        };
        let again = new.encode(None).map_err(|error| refused(error.into()))?;
        if again != self.payload {
            return Err(refused(
                "it says what this version of the server does not know".into(),
            ));
        }
        Ok(new)
    }
}

/// What became of an append. The entries themselves are known to whoever sent them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Placed {
    /// The session that has the entries.
    pub session: SessionId,
    /// How it went.
    pub how: How,
    /// The head the writer believed in, where the entries are marked with it.
    pub rebased: Option<Seq>,
    /// Where each of them is.
    pub places: Vec<(Seq, Digest)>,
}

/// What is known about a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordOf {
    /// The session.
    pub session: SessionId,
}

impl Call for RecordOf {
    const NAME: &'static str = "record";
    type Answer = Record;
}

/// How a session was born.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BirthOf {
    /// The session.
    pub session: SessionId,
}

impl Call for BirthOf {
    const NAME: &'static str = "birth";
    type Answer = Birth;
}

/// Reads entries as they are stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadStored {
    /// The session.
    pub session: SessionId,
    /// Which stretch.
    pub read: Read,
}

impl Call for ReadStored {
    const NAME: &'static str = "read";
    type Answer = Stretch;
}

/// A run of a log, and what it follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stretch {
    /// The digest of the entry before the first.
    pub previous: Digest,
    /// The entries.
    pub entries: Vec<StoredEntry>,
}

impl Stretch {
    /// The entries, if each follows the one before unharmed.
    pub fn verified(self, of: &SessionId) -> Result<Vec<StoredEntry>, StoreError> {
        verify(self.previous, &self.entries, of)?;
        Ok(self.entries)
    }
}

/// Refuses entries of which one does not follow the one before unharmed.
pub(crate) fn verify(
    mut previous: Digest,
    entries: &[StoredEntry],
    of: &SessionId,
) -> Result<(), StoreError> {
    for entry in entries {
        throughline_store::verify(of, entry, &previous)?;
        previous = entry.digest;
    }
    Ok(())
}

/// How a session was born and a stretch of its log, even of one in the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyOf {
    /// The session.
    pub session: SessionId,
    /// Which stretch.
    pub read: Read,
}

impl Call for CopyOf {
    const NAME: &'static str = "copy";
    type Answer = Copied;
}

/// A part of a session's copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Copied {
    /// How it was born.
    pub birth: Birth,
    /// A run of its log.
    pub stretch: Stretch,
}

/// Makes a session that shares the entries up to one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The session to fork.
    pub session: SessionId,
    /// The last entry they share.
    pub at: Seq,
    /// How the fork is born.
    pub birth: Birth,
}

impl Call for Fork {
    const NAME: &'static str = "fork";
    type Answer = Record;
}

/// Where entries are in the session's own part of the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locate {
    /// The session.
    pub session: SessionId,
    /// Which entries.
    pub ids: Vec<EntryId>,
}

impl Call for Locate {
    const NAME: &'static str = "locate";
    type Answer = Vec<Option<Seq>>;
}

/// Replaces the content of entries for good.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erase {
    /// The session.
    pub session: SessionId,
    /// Which entries.
    pub entries: Vec<Seq>,
    /// Why.
    pub reason: Option<String>,
}

impl Call for Erase {
    const NAME: &'static str = "erase";
    type Answer = ();
}

/// Brings in a log from elsewhere as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adopt {
    /// How the session was born.
    pub birth: Birth,
    /// What to continue it with.
    pub entries: Vec<StoredEntry>,
}

impl Call for Adopt {
    const NAME: &'static str = "adopt";
    type Answer = u64;
}
