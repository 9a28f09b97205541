//! What comes in from elsewhere: the sessions of other systems, as their readers tell them.
//!
//! A reader tells what it finds in order: which session it is in, and what happened there.
//! It knows neither numbers nor ids of ours; those are for whoever takes it in.

use crate::{AgentRef, Body, Message, Summary, Timestamp, Usage};

/// Something that comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingItem {
    /// What comes next belongs to this session.
    Session(Box<IncomingSession>),
    /// Something that happened in it.
    Entry(Box<IncomingEntry>),
    /// The bytes of an attachment that a later entry names.
    Blob(Vec<u8>),
    /// Something that was not taken.
    Skipped(SkippedRecord),
}

/// A session of another system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncomingSession {
    /// The system, where it has ids of its own; none where `id` is anybody's word for a
    /// session here: an id, key or name, of one that is there or not.
    pub source_system: Option<String>,
    /// What that system calls it.
    pub id: String,
    /// When it began.
    pub at: Option<Timestamp>,
    /// Its title.
    pub name: Option<String>,
    /// Its agent.
    pub agent: Option<AgentRef>,
    /// Its project: a name, or an id.
    pub project: Option<String>,
    /// The folder it began in.
    pub workspace: Option<String>,
    /// The address of that folder's repository.
    pub remote: Option<String>,
    /// Where it came from.
    pub origin: Option<IncomingOrigin>,
}

/// Where a session of another system came from, in that system's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncomingOrigin {
    /// It shares another's entries up to one of them, or as far as they are the same.
    Forked {
        /// The other session.
        session: String,
        /// The last entry shared.
        at: Option<String>,
    },
    /// It was started by another, or goes on from its summary.
    Started {
        /// The other session.
        session: String,
    },
}

/// Something that happened in a session of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingEntry {
    /// What it is recognised by when it comes again.
    pub identity: EntryIdentity,
    /// When.
    pub at: Option<Timestamp>,
    /// Who said it, where the role does not tell.
    pub author: Option<String>,
    /// What.
    pub event: ImportEvent,
    /// Where in its source it stood: a line's or a record's number, for telling of failures.
    pub position: u64,
}

/// What an entry is recognised by when it comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryIdentity {
    /// What the other system calls it.
    External(String),
    /// Its place in the source, which does not change as the source grows.
    Position(String),
    /// Its time and content, and how often the same has come.
    Content,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportEvent {
    /// Something that can be said without a number of ours.
    Body(Body),
    /// Everything so far was summarized.
    Compacted {
        /// What it came to.
        summary: Summary,
        /// What wrote it.
        by: String,
        /// The first entry that was kept as it is, where any was.
        keeps: Option<String>,
        /// What it cost.
        usage: Option<Usage>,
    },
    /// Everything so far was summarized for whoever comes back to it, and still counts.
    Summarized {
        /// What it came to.
        summary: Summary,
        /// What wrote it.
        by: String,
    },
    /// What came after an entry was taken back; everything, where none is named.
    Rewound {
        /// The last entry that still counts.
        to: Option<String>,
    },
    /// The session got a title.
    Titled {
        /// The title, in that system's words.
        title: String,
        /// Whether a person chose it.
        by_person: bool,
    },
    /// The session got tags, which may be any words.
    Tagged(Vec<String>),
    /// Tags were taken away.
    Untagged(Vec<String>),
}

/// Something that was not taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedRecord {
    /// Where it stood: a line's or a record's number.
    pub position: u64,
    /// What it was.
    pub description: String,
    /// Whether it was damaged; else it is of no use here.
    pub damaged: bool,
}

impl IncomingEntry {
    /// A message that the other system has an id for, or none.
    pub fn message(
        position: u64,
        id: Option<String>,
        at: Option<Timestamp>,
        said: Message,
    ) -> Self {
        Self {
            identity: id.map_or_else(
                || EntryIdentity::Position(position.to_string()),
                EntryIdentity::External,
            ),
            at,
            author: None,
            event: ImportEvent::Body(Body::Message(said)),
            position,
        }
    }
}
