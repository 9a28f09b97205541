//! The entries of a memory: what is remembered, and what becomes of it.
//!
//! A memory is a session like any other, and these are the kinds its log is made of.
//! What they come to is a fold: see [`Facts`](crate::Facts).

use serde::{Deserialize, Serialize};

use crate::{Seq, SessionId};

/// Who a fact is by where a person said it; anything else is a model's name, or
/// `extractive`.
pub const PERSON: &str = "person";

/// The entry a fact was taken from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FactSource {
    /// The session it is in.
    pub session: SessionId,
    /// Its number there.
    pub seq: Seq,
}

/// Something to remember across sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedFact {
    /// What.
    pub text: String,
    /// Where it was said, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FactSource>,
    /// Who says so: [`PERSON`], a model's name, or `extractive`.
    pub by: String,
    /// Files and folders of the project it belongs to, relative to its top.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Older facts that this one replaces, once it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<Seq>,
    /// Whether it waits for somebody's word before it stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
}
