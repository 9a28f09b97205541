//! The input of the index: the text of entries.
//!
//! A passage holds only what never changes about an entry. What can change (a session's name,
//! tags, project, whether it is in the trash) is looked up in the store and passed with each
//! query as a set of sessions.

use serde::{Deserialize, Serialize};
use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};

use crate::Anchor;

/// The text of one entry, with its location, author and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// The position of the entry in the store's order of arrival.
    pub position: u64,
    /// The owner of the session.
    pub owner: Owner,
    /// The session that contains it.
    pub session: SessionId,
    /// Its number in the session.
    pub seq: Seq,
    /// The role of its author.
    pub role: Role,
    /// The author's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was written.
    pub at: Timestamp,
    /// The text of the entry.
    pub text: String,
    /// The files it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Its id in another system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The session this one was forked from, and the last entry shared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<(SessionId, Seq)>,
}

/// A passage or session to remove from the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The owner of the session.
    pub owner: Owner,
    /// The session.
    pub session: SessionId,
    /// The entry, or the whole session.
    pub seq: Option<Seq>,
}

/// A batch that is indexed in one durable commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The passages to add.
    pub passages: Vec<Passage>,
    /// The passages to remove. Removals are applied first: a passage added in the same batch
    /// stays.
    pub removed: Vec<Removal>,
    /// The position the batch begins after, which must be the index's watermark.
    pub after: u64,
    /// The position up to which entries are indexed after this batch.
    pub upto: u64,
    /// The anchors of the changes in this batch, oldest first.
    pub anchors: Vec<Anchor>,
}
