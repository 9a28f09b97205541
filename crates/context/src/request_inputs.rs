//! The inputs that a request is built from.

use serde::{Deserialize, Serialize};
use throughline_model::{Checkpoint, Content, Entry, Record, Seq, SessionId, Timestamp};

/// An entry with its stored token count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedEntry {
    /// The entry.
    pub entry: Entry,
    /// Its tokens, counted with [`count_entry_tokens`](crate::count_entry_tokens).
    pub tokens: u64,
}

/// A document of the project context: workspace, instructions file, tree, commits,
/// task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextDocument {
    /// The document's name.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A fact remembered across sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFact {
    /// The fact.
    pub text: String,
    /// The entry that holds it. Facts are rendered in the order of these, whatever
    /// their rank, so that consecutive requests share a prefix.
    pub source: Option<EntryRef>,
}

/// A relevant excerpt of an earlier conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The entry it is from.
    pub source: EntryRef,
    /// When it was sent.
    pub at: Timestamp,
    /// The author.
    pub author: String,
    /// The text.
    pub text: String,
    /// The relevance; larger is better.
    pub score: f32,
    /// The author and text of the message before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<(String, String)>,
}

/// A reference to an entry of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EntryRef {
    /// The session it is in.
    pub session: SessionId,
    /// The entry's number there.
    pub seq: Seq,
    /// The entry's id in the system it was imported from.
    pub external_id: Option<String>,
}

/// Everything that a request is built from.
#[derive(Clone, Copy, Debug)]
pub struct RequestInputs<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The agent's instructions.
    pub agent: Option<&'a str>,
    /// Project context, the most important document first.
    pub documents: &'a [ContextDocument],
    /// Remembered facts, the most important first: the last ones are left out first.
    pub memory: &'a [MemoryFact],
    /// The session's record; pins and decisions are taken from here.
    pub record: &'a Record,
    /// The checkpoint in effect.
    pub checkpoint: Option<(&'a Entry, &'a Checkpoint)>,
    /// The visible entries after the checkpoint, oldest first; possibly only the tail.
    pub entries: &'a [CountedEntry],
    /// The number of visible entries before those, which were not loaded.
    pub unloaded_entries: u64,
    /// Recalled excerpts, the best first.
    pub recalled: &'a [Excerpt],
    /// The new message.
    pub message: Option<&'a Content>,
}
