//! The immutable header of a session, written when it is created.

use serde::{Deserialize, Serialize};

use crate::{AgentRef, Key, Lineage, Name, ProjectId, SessionId, Timestamp};

/// The immutable header of a session.
///
/// Not an entry: the first entry has number 1. The fold starts from the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// The session id, unique per owner.
    pub id: SessionId,
    /// When it was created.
    pub at: Timestamp,
    /// An agent's stable name for it, unique per owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// The session it derives from.
    #[serde(default)]
    pub lineage: Lineage,
    /// The initial name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// The initial agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    /// The initial project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// The initial folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

impl SessionHeader {
    /// Creates a header that has only an id and a time.
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
