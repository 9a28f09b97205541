//! What a feeder writes to: where passages are kept.

use std::ops::Range;

use throughline_model::{Owner, Seq, SessionId};

use crate::{Document, IndexState, Passage, RecallError};

/// One session of one owner.
pub type OwnedSession = (Owner, SessionId);

/// Where passages are kept, open for writing to one feeder.
///
/// Between [`Stock::begin`] and [`Stock::commit`] what is asked is answered as of the
/// beginning.
pub trait IndexWriter: Send {
    /// Begins a batch; tells how far the index goes.
    fn begin(&mut self) -> Result<IndexState, RecallError>;

    /// The passages that have the words of one in them, or of any of a session's; more of
    /// them do no harm. Those of a session that is itself asked about need not be told.
    fn find_neighbors(
        &mut self,
        place: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<Vec<(OwnedSession, Seq)>, RecallError>;

    /// The first or the last `count` passages of a session within a range, in order.
    fn passages(
        &self,
        place: &OwnedSession,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError>;

    /// Takes out a passage, or all of a session's.
    fn remove(&mut self, place: &OwnedSession, seq: Option<Seq>) -> Result<(), RecallError>;

    /// Puts in a passage, in place of what was there of it, where it `is_known`.
    fn put(&mut self, document: Document, is_known: bool) -> Result<(), RecallError>;

    /// Makes the batch durable, and with it how far the index goes then.
    fn commit(&mut self, state: &IndexState) -> Result<(), RecallError>;

    /// Undoes a batch, as far as it went.
    fn rollback(&mut self);

    /// Takes what was removed off the disk, as far as that is ours to do.
    fn vacuum(&mut self) -> Result<(), RecallError>;

    /// Ends what still goes on behind the last commit.
    fn finish(self: Box<Self>) -> Result<(), RecallError>;
}
