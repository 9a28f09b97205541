//! What is fed to the index: entries as text.
//!
//! A passage holds only what never changes about an entry. What does change (a session's
//! name, tags, project, whether it is in the trash) is asked of the store and given with
//! each query as a set of sessions.

use serde::{Deserialize, Serialize};
use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};

use crate::Anchor;

/// One entry's text, with where it is and who said it when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// Its place in the order of arrival at the store.
    pub position: u64,
    /// Whose.
    pub owner: Owner,
    /// The session it is in.
    pub session: SessionId,
    /// Its number there.
    pub seq: Seq,
    /// Who speaks.
    pub role: Role,
    /// Their name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When.
    pub at: Timestamp,
    /// What was said.
    pub text: String,
    /// The files it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What another system calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Where the session's log leads to before its own first entry: the session it was
    /// forked from, and the last entry shared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<(SessionId, Seq)>,
}

/// Something that is no longer to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Whose.
    pub owner: Owner,
    /// The session.
    pub session: SessionId,
    /// The entry, or the whole session.
    pub seq: Option<Seq>,
}

/// What the index is fed at once, in one durable commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// What was said.
    pub passages: Vec<Passage>,
    /// What is to be forgotten. Removals come first: a passage in the same batch stays.
    pub removed: Vec<Removal>,
    /// The position it begins after, which must be the index's watermark.
    pub after: u64,
    /// The position up to which the store is then in the index.
    pub upto: u64,
    /// The changes that it is made from, oldest first.
    pub anchors: Vec<Anchor>,
}
