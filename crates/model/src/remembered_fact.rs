//! The fact entries that a memory's log consists of.
//!
//! A memory is stored as a session. The resulting facts are a fold of its log: see
//! [`Facts`](crate::Facts).

use serde::{Deserialize, Serialize};

use crate::{Seq, SessionId};

/// The `by` of a fact written by a person; other values are a model's name, or
/// `extractive`.
pub const PERSON: &str = "person";

/// The entry that a fact was taken from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FactSource {
    /// The session it is in.
    pub session: SessionId,
    /// The entry's number there.
    pub seq: Seq,
}

/// A fact to remember across sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedFact {
    /// The fact.
    pub text: String,
    /// The entry it was taken from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FactSource>,
    /// Who wrote it: [`PERSON`], a model's name, or `extractive`.
    pub by: String,
    /// Files and folders it applies to, relative to the project root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Older facts that this one replaces once it is in effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<Seq>,
    /// Whether it needs to be accepted before it is in effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
}
