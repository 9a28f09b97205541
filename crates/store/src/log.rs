//! The append-only log of one session.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{
    Entry, EntryId, Owner, Record, Seq, SessionHeader, SessionId, SessionRef, StoredEntry,
};

use crate::{Append, AppendOutcome, StoreError, decode_entry};

/// A session that was asked for, made if it was not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateOutcome {
    /// What is known about it.
    pub record: Record,
    /// Whether it was there already.
    pub existed: bool,
}

/// Which stretch of a log to read. Entries always come in order, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRange {
    /// The first entry wanted.
    pub from: Seq,
    /// The last entry wanted; none for the end of the log.
    pub to: Option<Seq>,
    /// At most this many.
    pub limit: usize,
    /// Whether the limit counts from the end of the stretch.
    pub from_end: bool,
}

impl ReadRange {
    /// A page holds at most about this many bytes of payload, and at least one entry.
    pub const PAGE_BYTES: usize = 16 * 1024 * 1024;

    /// From an entry on.
    pub fn starting_at(from: Seq, limit: usize) -> Self {
        Self {
            from,
            to: None,
            limit,
            from_end: false,
        }
    }

    /// The last entries.
    pub fn tail(limit: usize) -> Self {
        Self::up_to(None, limit)
    }

    /// The last entries up to and including `to`.
    pub fn up_to(to: Option<Seq>, limit: usize) -> Self {
        Self {
            from: Seq(1),
            to,
            limit,
            from_end: true,
        }
    }

    /// Everything from one entry to another.
    pub fn between(from: Seq, to: Seq, limit: usize) -> Self {
        Self {
            from,
            to: Some(to),
            limit,
            from_end: false,
        }
    }
}

/// Refuses numbers that are none of a log's, whose last is `head`.
pub fn refuse_unknown_entries(
    of: &SessionId,
    entries: &[Seq],
    head: Seq,
) -> Result<(), StoreError> {
    let unknown = |seq: &&Seq| **seq == Seq::ZERO || **seq > head;
    match entries.iter().find(unknown) {
        None => Ok(()),
        Some(seq) => Err(StoreError::NoSuchEntry {
            id: of.clone(),
            seq: *seq,
            head,
        }),
    }
}

/// Where logs live. Every implementation passes the conformance suite.
#[async_trait]
pub trait LogStore: Send + Sync + Debug {
    /// Makes a session, or finds the one that holds the birth's key.
    ///
    /// Fails with [`StoreError::SessionExists`] if the id is taken by one that was born
    /// otherwise; the same birth again finds the same session.
    async fn create(
        &self,
        owner: &Owner,
        birth: SessionHeader,
    ) -> Result<CreateOutcome, StoreError>;

    /// Appends; answers once the entries are durable.
    ///
    /// All or nothing, even if the future is dropped. Appending the same entry ids again
    /// changes nothing and answers as the first time.
    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError>;

    /// What is known about a session: one lookup, whatever its length.
    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError>;

    /// How the session was born.
    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError>;

    /// Reads entries as they are stored: touches only what it returns.
    ///
    /// A page may be shorter than the limit where entries are large; it is empty only
    /// when the stretch is.
    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError>;

    /// How a session was born and a stretch of its log, even of one in the trash: for
    /// copying a whole store.
    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError>;

    /// Reads entries.
    async fn read(&self, of: &SessionRef, read: ReadRange) -> Result<Vec<Entry>, StoreError> {
        let stored = self.read_stored(of, read).await?;
        stored
            .iter()
            .map(|entry| decode_entry(&of.id, entry))
            .collect()
    }

    /// Makes a session that shares the entries up to `at` and goes on from there.
    ///
    /// Costs the same whatever the length of the log. The birth is completed with what
    /// stood at that entry.
    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        birth: SessionHeader,
    ) -> Result<Record, StoreError>;

    /// Where each of these entries is in the session's own part of the log, if it is.
    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError>;

    /// Replaces the content of entries for good; the chain stays whole.
    ///
    /// Forks that share the entries lose the content too. Costs the length of the log.
    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Brings in a log from elsewhere as it is, digests included.
    ///
    /// Continues what is there: the session is made if need be, entries that are there
    /// already are passed over, and a log that has gone another way is refused with
    /// [`StoreError::Moved`]. Answers how many entries were new.
    async fn import_log(
        &self,
        owner: &Owner,
        birth: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError>;
}
