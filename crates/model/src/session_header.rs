//! What is known of a session before anything is said in it.

use serde::{Deserialize, Serialize};

use crate::{AgentRef, Key, Lineage, Name, ProjectId, SessionId, Timestamp};

/// What is known of a session before anything is said in it.
///
/// Not an entry: the first thing said is entry 1. The fold starts from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// Its id, unique per owner.
    pub id: SessionId,
    /// When it was made.
    pub at: Timestamp,
    /// An agent's stable name for it, unique per owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Where it came from.
    #[serde(default)]
    pub lineage: Lineage,
    /// The name it starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The agent it starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    /// The project it starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// The folder it starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

impl SessionHeader {
    /// A session with nothing but an id.
    pub fn new(id: SessionId, at: Timestamp) -> Self {
        Self {
            id,
            at: crate::truncate_to_micros(at),
            key: None,
            lineage: Lineage::Root,
            name: None,
            agent: None,
            project: None,
            workspace: None,
        }
    }
}
