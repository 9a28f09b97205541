//! Calls on session logs.

use serde::{Deserialize, Serialize};
use throughline_model::{
    Digest, EntryId, NewEntry, Record, Seq, SessionHeader, SessionId, StoredEntry, Timestamp,
};
use throughline_store::{
    AppendKind, CreateOutcome, Expect, Fence, OnConflict, ReadRange, StoreError,
};

use super::Call;

/// Creates a session, or returns the one that holds the header's key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// The session's header.
    pub birth: SessionHeader,
}

impl Call for Create {
    const NAME: &'static str = "create";
    type Answer = CreateOutcome;
}

/// Appends entries to a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The head the writer expects.
    pub expect: Expect,
    /// What to do if the head is another.
    pub on_conflict: OnConflict,
    /// The entries to append.
    pub entries: Vec<EntryToAppend>,
    /// The lease this is done under, if any.
    pub fence: Option<Fence>,
}

impl Call for Append {
    const NAME: &'static str = "append";
    type Answer = AppendReceipt;
}

/// An entry to append, with its payload exactly as it is to be stored.
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
    /// Decodes the entry. Fails if this program would store other bytes than were sent, since
    /// digests cover the payload's bytes.
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
                "it has content that this version of the server does not know".into(),
            ));
        }
        Ok(new)
    }
}

/// The result of an append. The sender has the entries themselves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AppendReceipt {
    /// The session that the entries are in.
    pub session: SessionId,
    /// Whether they were appended, rebased, forked or repeated.
    pub how: AppendKind,
    /// The head the writer expected, if the entries were rebased.
    pub rebased: Option<Seq>,
    /// The position and digest of each entry.
    pub places: Vec<(Seq, Digest)>,
}

/// Gets a session's record.
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

/// Gets a session's header.
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

/// Reads entries as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadStored {
    /// The session.
    pub session: SessionId,
    /// Which range to read.
    pub read: ReadRange,
}

impl Call for ReadStored {
    const NAME: &'static str = "read";
    type Answer = LogSlice;
}

/// A contiguous part of a log, with the digest it follows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogSlice {
    /// The digest of the entry before the first.
    pub previous: Digest,
    /// The entries.
    pub entries: Vec<StoredEntry>,
}

impl LogSlice {
    /// Returns the entries after verifying the digest chain.
    pub fn into_verified(self, of: &SessionId) -> Result<Vec<StoredEntry>, StoreError> {
        verify_chain(self.previous, &self.entries, of)?;
        Ok(self.entries)
    }
}

/// Fails if an entry does not follow from the one before it.
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

/// Reads a session's header and a range of its log, even if it is in the trash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadForCopy {
    /// The session.
    pub session: SessionId,
    /// Which range to read.
    pub read: ReadRange,
}

impl Call for ReadForCopy {
    const NAME: &'static str = "copy";
    type Answer = SessionCopy;
}

/// Part of a session's copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionCopy {
    /// The session's header.
    pub birth: SessionHeader,
    /// Part of its log.
    pub stretch: LogSlice,
}

/// Creates a session that shares the entries up to one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The session to fork.
    pub session: SessionId,
    /// The last shared entry.
    pub at: Seq,
    /// The fork's header.
    pub birth: SessionHeader,
}

impl Call for Fork {
    const NAME: &'static str = "fork";
    type Answer = Record;
}

/// Finds the positions of entries among the session's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locate {
    /// The session.
    pub session: SessionId,
    /// The ids of the entries.
    pub ids: Vec<EntryId>,
}

impl Call for Locate {
    const NAME: &'static str = "locate";
    type Answer = Vec<Option<Seq>>;
}

/// Permanently replaces the content of entries by tombstones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erase {
    /// The session.
    pub session: SessionId,
    /// Which entries.
    pub entries: Vec<Seq>,
    /// The reason to record, if any.
    pub reason: Option<String>,
}

impl Call for Erase {
    const NAME: &'static str = "erase";
    type Answer = ();
}

/// Imports a log unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportLog {
    /// The session's header.
    pub birth: SessionHeader,
    /// The entries that continue the log.
    pub entries: Vec<StoredEntry>,
}

impl Call for ImportLog {
    const NAME: &'static str = "adopt";
    type Answer = u64;
}
