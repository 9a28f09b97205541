//! The trait for storing the append-only logs of sessions.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_model::{
    Entry, EntryId, Owner, Record, Seq, SessionHeader, SessionId, SessionRef, StoredEntry,
};

use crate::{Append, AppendOutcome, StoreError, decode_entry};

/// The result of creating a session, or finding the existing one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateOutcome {
    /// The session's record.
    pub record: Record,
    /// Whether it already existed.
    pub existed: bool,
}

/// A range of a log to read. Entries are always returned in order, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRange {
    /// The first entry.
    pub from: Seq,
    /// The last entry; `None` for the end of the log.
    pub to: Option<Seq>,
    /// The maximum number of entries.
    pub limit: usize,
    /// Whether the limit counts from the end of the range.
    pub from_end: bool,
}

impl ReadRange {
    /// The approximate maximum payload bytes of a page, which has at least one entry.
    pub const PAGE_BYTES: usize = 16 * 1024 * 1024;

    /// Starts at an entry.
    pub fn starting_at(from: Seq, limit: usize) -> Self {
        Self {
            from,
            to: None,
            limit,
            from_end: false,
        }
    }

    /// The last entries of the log.
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

    /// The entries from `from` to `to`, both included.
    pub fn between(from: Seq, to: Seq, limit: usize) -> Self {
        Self {
            from,
            to: Some(to),
            limit,
            from_end: false,
        }
    }
}

/// Rejects sequence numbers that are not in a log with this head.
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

/// Stores session logs. Every implementation passes the conformance suite.
#[async_trait]
pub trait LogStore: Send + Sync + Debug {
    /// Creates a session, or finds the one with the header's key.
    ///
    /// Fails with [`StoreError::SessionExists`] if the id is taken by a session with
    /// another header; repeating the call with the same header finds the same session.
    async fn create(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError>;

    /// Appends entries; returns once they are durable.
    ///
    /// Atomic, even if the future is dropped. Idempotent: appending the same entry ids
    /// again has no effect and returns the same result.
    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError>;

    /// The session's record: one lookup, whatever the length of the log.
    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError>;

    /// The session's header.
    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError>;

    /// Reads entries in stored form: touches only what it returns.
    ///
    /// A page may be shorter than the limit if entries are large; it is empty only if
    /// the range is.
    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError>;

    /// Reads the header and a range of the log, even of a trashed session: for copying
    /// a whole store.
    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError>;

    /// Reads and decodes entries.
    async fn read(&self, of: &SessionRef, read: ReadRange) -> Result<Vec<Entry>, StoreError> {
        let stored = self.read_stored(of, read).await?;
        stored
            .iter()
            .map(|entry| decode_entry(&of.id, entry))
            .collect()
    }

    /// Creates a session that shares the entries up to `at`.
    ///
    /// Takes constant time whatever the length of the log. The header is completed with
    /// the state at that entry.
    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        header: SessionHeader,
    ) -> Result<Record, StoreError>;

    /// The position of each entry in the session's own part of the log, if it is there.
    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError>;

    /// Permanently erases the content of entries; the digest chain stays valid.
    ///
    /// Forks that share the entries lose the content too. Takes time linear in the
    /// length of the log.
    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError>;

    /// Imports a log from another store verbatim, digests included.
    ///
    /// Creates the session if necessary and skips entries that are already stored;
    /// fails with [`StoreError::Moved`] if the logs have diverged. Returns the number
    /// of new entries.
    async fn import_log(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError>;
}
