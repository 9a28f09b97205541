//! What a request is made from, as the caller found it.

use serde::{Deserialize, Serialize};
use throughline_model::{Checkpoint, Content, Entry, Record, Seq, SessionId, Timestamp};

/// An entry with its stored count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedEntry {
    /// The entry.
    pub entry: Entry,
    /// What it costs, by [`entry_tokens`](crate::entry_tokens).
    pub tokens: u64,
}

/// A part of the project context: workspace, instructions file, tree, commits, task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextDocument {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Something remembered across sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFact {
    /// What.
    pub text: String,
    /// The entry that holds it. Facts are told in the order of these, whichever matter
    /// most, so that requests begin alike.
    pub source: Option<EntryRef>,
}

/// Something said before that may matter now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Where.
    pub source: EntryRef,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub author: String,
    /// What.
    pub text: String,
    /// How well it matches; larger is better.
    pub score: f32,
    /// What was said just before, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<(String, String)>,
}

/// The place of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EntryRef {
    /// The session it is in.
    pub session: SessionId,
    /// Its number there.
    pub seq: Seq,
    /// What another system calls it.
    pub external_id: Option<String>,
}

/// Everything a request is made from.
#[derive(Clone, Copy, Debug)]
pub struct RequestInputs<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// What the agent is and does.
    pub agent: Option<&'a str>,
    /// Project context, the most important first.
    pub documents: &'a [ContextDocument],
    /// What is remembered, the most important first: the last ones give way.
    pub memory: &'a [MemoryFact],
    /// What stands: pins and decisions are taken from here.
    pub record: &'a Record,
    /// The checkpoint in force.
    pub checkpoint: Option<(&'a Entry, &'a Checkpoint)>,
    /// What the model may see after the checkpoint, oldest first; perhaps only the tail.
    pub entries: &'a [CountedEntry],
    /// How many visible entries come before those and were not loaded.
    pub unloaded_entries: u64,
    /// What was said before that may matter now, the best first.
    pub recalled: &'a [Excerpt],
    /// The new message.
    pub message: Option<&'a Content>,
}
