//! The write side of an index, implemented by each backend that stores passages.

use std::ops::Range;

use throughline_model::{Owner, Seq, SessionId};

use crate::{Document, IndexState, Passage, RecallError};

/// One session of one owner.
pub type OwnedSession = (Owner, SessionId);

/// The storage of passages, opened for writing by one [`Indexer`](crate::Indexer).
///
/// Between [`IndexWriter::begin`] and [`IndexWriter::commit`], reads return the state at the
/// beginning of the batch.
pub trait IndexWriter: Send {
    /// Begins a batch; returns the current state of the index.
    fn begin(&mut self) -> Result<IndexState, RecallError>;

    /// Returns the passages whose context includes the words of a passage, or of any passage
    /// of a session. Returning too many is harmless. Passages of the given session itself may
    /// be left out.
    fn find_neighbors(
        &mut self,
        session: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<Vec<(OwnedSession, Seq)>, RecallError>;

    /// Returns the first or last `count` passages of a session within a range, in order.
    fn passages(
        &self,
        session: &OwnedSession,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError>;

    /// Removes a passage, or all passages of a session.
    fn remove(&mut self, session: &OwnedSession, seq: Option<Seq>) -> Result<(), RecallError>;

    /// Writes a passage's document; replaces the existing one if `is_known`.
    fn put(&mut self, document: Document, is_known: bool) -> Result<(), RecallError>;

    /// Commits the batch together with the new state, durably.
    fn commit(&mut self, state: &IndexState) -> Result<(), RecallError>;

    /// Discards the current batch.
    fn rollback(&mut self);

    /// Erases removed passages from the disk, as far as the backend controls that.
    fn vacuum(&mut self) -> Result<(), RecallError>;

    /// Waits for background work after the last commit, and closes the writer.
    fn finish(self: Box<Self>) -> Result<(), RecallError>;
}
