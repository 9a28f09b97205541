//! Logs.

use serde::{Deserialize, Serialize};
use throughline_model::{
    Digest, EntryId, NewEntry, Record, Seq, SessionHeader, SessionId, StoredEntry, Timestamp,
};
use throughline_store::{
    AppendKind, CreateOutcome, Expect, Fence, OnConflict, ReadRange, StoreError,
};

use super::Call;

/// Makes a session, or finds the one that holds the birth's key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// How it is born.
    pub birth: SessionHeader,
}

impl Call for Create {
    const NAME: &'static str = "create";
    type Answer = CreateOutcome;
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
    pub entries: Vec<EntryToAppend>,
    /// The lease it is appended under, if any.
    pub fence: Option<Fence>,
}

impl Call for Append {
    const NAME: &'static str = "append";
    type Answer = AppendReceipt;
}

/// An entry to append, its payload as it is to be stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryToAppend {
    /// Its id.
    pub id: EntryId,
    /// When it happened.
    pub at: Timestamp,
    /// Everything else, as JSON.
    pub payload: String,
}

impl EntryToAppend {
    /// What is to be appended. Refused if this program would store something else than what
    /// was sent: digests are over the payload's bytes.
    pub fn into_new_entry(self) -> Result<NewEntry, StoreError> {
        let refused = |source: throughline_store::BoxError| StoreError::Remote {
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
        let again = new
            .encode_payload(None)
            .map_err(|error| refused(error.into()))?;
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
pub struct AppendReceipt {
    /// The session that has the entries.
    pub session: SessionId,
    /// How it went.
    pub how: AppendKind,
    /// The head the writer believed in, where the entries are marked with it.
    pub rebased: Option<Seq>,
    /// Where each of them is.
    pub places: Vec<(Seq, Digest)>,
}

/// What is known about a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetRecord {
    /// The session.
    pub session: SessionId,
}

impl Call for GetRecord {
    const NAME: &'static str = "record";
    type Answer = Record;
}

/// How a session was born.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetHeader {
    /// The session.
    pub session: SessionId,
}

impl Call for GetHeader {
    const NAME: &'static str = "birth";
    type Answer = SessionHeader;
}

/// Reads entries as they are stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadStored {
    /// The session.
    pub session: SessionId,
    /// Which stretch.
    pub read: ReadRange,
}

impl Call for ReadStored {
    const NAME: &'static str = "read";
    type Answer = LogSlice;
}

/// A run of a log, and what it follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogSlice {
    /// The digest of the entry before the first.
    pub previous: Digest,
    /// The entries.
    pub entries: Vec<StoredEntry>,
}

impl LogSlice {
    /// The entries, if each follows the one before unharmed.
    pub fn into_verified(self, of: &SessionId) -> Result<Vec<StoredEntry>, StoreError> {
        verify_chain(self.previous, &self.entries, of)?;
        Ok(self.entries)
    }
}

/// Refuses entries of which one does not follow the one before unharmed.
pub(crate) fn verify_chain(
    mut previous: Digest,
    entries: &[StoredEntry],
    of: &SessionId,
) -> Result<(), StoreError> {
    for entry in entries {
        throughline_store::verify_entry(of, entry, &previous)?;
        previous = entry.digest;
    }
    Ok(())
}

/// How a session was born and a stretch of its log, even of one in the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadForCopy {
    /// The session.
    pub session: SessionId,
    /// Which stretch.
    pub read: ReadRange,
}

impl Call for ReadForCopy {
    const NAME: &'static str = "copy";
    type Answer = SessionCopy;
}

/// A part of a session's copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionCopy {
    /// How it was born.
    pub birth: SessionHeader,
    /// A run of its log.
    pub stretch: LogSlice,
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
    pub birth: SessionHeader,
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
pub struct ImportLog {
    /// How the session was born.
    pub birth: SessionHeader,
    /// What to continue it with.
    pub entries: Vec<StoredEntry>,
}

impl Call for ImportLog {
    const NAME: &'static str = "adopt";
    type Answer = u64;
}
