//! The recorded history: what clients did and which answers they received.
//!
//! Times are measured from the start of the run by the test's own clock, which no fault
//! affects. A call took effect, if at all, between its start and its end; one whose outcome
//! the client does not know may take effect at any time after its start.

use std::collections::BTreeMap;
use std::time::Duration;

/// A time, measured from the start of the run.
pub(crate) type Moment = Duration;

/// The time from start to end of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Moment,
    pub(crate) end: Moment,
}

/// What a client meant to append under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IntendedAppend {
    pub(crate) session: String,
    pub(crate) text: String,
}

/// An entry as a server returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedEntry {
    pub(crate) seq: u64,
    pub(crate) id: String,
    pub(crate) text: String,
}

/// One call of a client.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) span: Span,
    pub(crate) action: Action,
}

/// The operation called, and its answer.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// One attempt to append an entry.
    Append { id: String, answer: AppendAnswer },
    /// A page of a session was read: at most `limit` entries after a number.
    Read {
        session: String,
        after: u64,
        limit: usize,
        head: u64,
        entries: Vec<ObservedEntry>,
    },
    /// An entry was searched for by its text.
    Search {
        id: String,
        hits: Vec<Hit>,
        /// How many changes the server reported as not yet indexed.
        behind: u64,
    },
}

/// The answer to an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AppendAnswer {
    /// The entry is durable.
    Acknowledged(ObservedEntry),
    /// The answer promises that this call did not and will not append it.
    Refused(String),
    /// No answer, or one that promises nothing.
    Unknown,
}

/// One search result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) session: String,
    pub(crate) seq: u64,
    pub(crate) snippet: String,
}

/// One stream of the feed; a follower opens one after another.
#[derive(Clone, Debug)]
pub(crate) struct FeedStream {
    pub(crate) follower: usize,
    pub(crate) opened: Moment,
    /// The position it resumed after; 0 for the beginning.
    pub(crate) after: u64,
    pub(crate) events: Vec<FeedEvent>,
}

/// One entry as the feed delivered it.
#[derive(Clone, Debug)]
pub(crate) struct FeedEvent {
    pub(crate) received: Moment,
    pub(crate) position: u64,
    pub(crate) session: String,
    pub(crate) entry: ObservedEntry,
}

/// A restore of a backup. Calls that overlap with it may be answered from either history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restore {
    /// When the backup was made.
    pub(crate) backup: Span,
    pub(crate) span: Span,
}

/// Everything that happened in one run over one store.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The intended appends, by id.
    pub(crate) intended: BTreeMap<String, IntendedAppend>,
    pub(crate) calls: Vec<Call>,
    pub(crate) feeds: Vec<FeedStream>,
    /// In order.
    pub(crate) restores: Vec<Restore>,
    /// The logs of all sessions, read at the end; once from each server.
    pub(crate) final_logs: Vec<BTreeMap<String, Vec<ObservedEntry>>>,
}
