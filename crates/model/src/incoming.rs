//! The items that an import reader produces from sessions of other systems.
//!
//! A reader yields items in order: the session, then the events in it. It does not
//! assign sequence numbers or ids; the importer does.

use crate::{AgentRef, Body, Message, Summary, Timestamp, Usage};

/// One item of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingItem {
    /// The session that the following items belong to.
    Session(Box<IncomingSession>),
    /// An event in the session.
    Entry(Box<IncomingEntry>),
    /// The bytes of an attachment that a later entry refers to.
    Blob(Vec<u8>),
    /// A record that was not imported.
    Skipped(SkippedRecord),
}

/// A session of another system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncomingSession {
    /// The source system, if it has session ids of its own. If `None`, `id` is a user's
    /// reference to a session here, which may or may not exist: an id, key or name.
    pub source_system: Option<String>,
    /// The session's id in that system.
    pub id: String,
    /// When it started.
    pub at: Option<Timestamp>,
    /// Its title.
    pub name: Option<String>,
    /// Its agent.
    pub agent: Option<AgentRef>,
    /// Its project: a name or an id.
    pub project: Option<String>,
    /// The folder it started in.
    pub workspace: Option<String>,
    /// The URL of that folder's repository.
    pub remote: Option<String>,
    /// The session it derives from.
    pub origin: Option<IncomingOrigin>,
}

/// The session that an imported session derives from, with the ids of the source
/// system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingOrigin {
    /// Forked: it shares the other session's entries up to one of them, or as far as
    /// they are equal.
    Forked {
        /// The other session.
        session: String,
        /// The last shared entry.
        at: Option<String>,
    },
    /// Started by another session, or continued from its summary.
    Started {
        /// The other session.
        session: String,
    },
}

/// An event in a session of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingEntry {
    /// How the entry is recognized on the next import.
    pub identity: EntryIdentity,
    /// When it happened.
    pub at: Option<Timestamp>,
    /// The author, where the role does not identify them.
    pub author: Option<String>,
    /// The event.
    pub event: ImportEvent,
    /// Its line or record number in the source, for error messages.
    pub position: u64,
}

/// How an imported entry is recognized on the next import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryIdentity {
    /// By its id in the source system.
    External(String),
    /// By its position in the source, which stays the same as the source grows.
    Position(String),
    /// By its time and content, and the number of identical entries before it.
    Content,
}

/// The event that an imported entry records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportEvent {
    /// A body that refers to no sequence number here.
    Body(Body),
    /// Everything so far was summarized, and the summary replaces it.
    Compacted {
        /// The summary.
        summary: Summary,
        /// Who wrote it.
        by: String,
        /// The first entry kept verbatim, if any.
        keeps: Option<String>,
        /// The reported token usage.
        usage: Option<Usage>,
    },
    /// Everything so far was summarized for a later resume, and stays visible.
    Summarized {
        /// The summary.
        summary: Summary,
        /// Who wrote it.
        by: String,
    },
    /// The session was rewound to an entry, or to the start if none is given.
    Rewound {
        /// The last entry that remains visible.
        to: Option<String>,
    },
    /// The session was titled.
    Titled {
        /// The title as in the source system.
        title: String,
        /// Whether a person chose it.
        by_person: bool,
    },
    /// Tags were added; they may be any text.
    Tagged(Vec<String>),
    /// Tags were removed.
    Untagged(Vec<String>),
}

/// A record that was not imported, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedRecord {
    /// Its line or record number in the source.
    pub position: u64,
    /// What kind of record it is.
    pub description: String,
    /// Whether it is damaged; otherwise it is irrelevant here.
    pub damaged: bool,
}

impl IncomingEntry {
    /// Creates a message entry, with its id in the source system if it has one.
    pub fn message(
        position: u64,
        id: Option<String>,
        at: Option<Timestamp>,
        message: Message,
    ) -> Self {
        Self {
            identity: id.map_or_else(
                || EntryIdentity::Position(position.to_string()),
                EntryIdentity::External,
            ),
            at,
            author: None,
            event: ImportEvent::Body(Body::Message(message)),
            position,
        }
    }
}
