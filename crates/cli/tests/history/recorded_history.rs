//! What clients did and were answered: the history that the checker verifies.
//!
//! Times are counted from the start of the run by one clock, that of the test, which no fault
//! touches. A call took effect, if at all, between its start and its end; one whose outcome the
//! client does not know may take effect at any time after its start.

use std::collections::BTreeMap;
use std::time::Duration;

/// A moment, counted from the start of the run.
pub(crate) type Moment = Duration;

/// From one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Moment,
    pub(crate) end: Moment,
}

/// What a client wanted to append under an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IntendedAppend {
    pub(crate) session: String,
    pub(crate) text: String,
}

/// An entry as a server showed it.
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

/// What was called, and the answer.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// One attempt to append an entry.
    Append { id: String, answer: AppendAnswer },
    /// A page of a session was read: the entries after a number, at most so many.
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
        /// How many changes the server said could not be searched yet.
        behind: u64,
    },
}

/// How an append was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AppendAnswer {
    /// The entry is durable.
    Acknowledged(ObservedEntry),
    /// The answer promises that it was not and will not be appended by this call.
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

/// One stream of the feed: a follower has one after another.
#[derive(Clone, Debug)]
pub(crate) struct FeedStream {
    pub(crate) follower: usize,
    pub(crate) opened: Moment,
    /// The position it resumed after; 0 for everything there is.
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

/// A backup was restored. Calls that overlap with it are answered from either history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restore {
    /// When the backup was made.
    pub(crate) backup: Span,
    pub(crate) span: Span,
}

/// Everything that happened in one run over one store.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// What was to be appended, by id.
    pub(crate) intended: BTreeMap<String, IntendedAppend>,
    pub(crate) calls: Vec<Call>,
    pub(crate) feeds: Vec<FeedStream>,
    /// In order.
    pub(crate) restores: Vec<Restore>,
    /// The logs of all sessions, read when everything was over; once by each server.
    pub(crate) final_logs: Vec<BTreeMap<String, Vec<ObservedEntry>>>,
}
