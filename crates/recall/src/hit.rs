//! What was found.

use serde::Serialize;
use throughline_model::{Role, Seq, SessionId, Timestamp};

use crate::{RerankReport, Snippet};

/// A passage that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The session it is in.
    pub session: SessionId,
    /// Its number there.
    pub seq: Seq,
    /// What another system calls it.
    pub external_id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// Their name.
    pub author: Option<String>,
    /// When.
    pub at: Timestamp,
    /// All that was said.
    pub text: String,
    /// How well it matches, compared with the other hits of the same query.
    pub score: f32,
    /// What the score is made of.
    #[serde(rename = "why")]
    pub score_parts: ScoreParts,
    /// The best place in it.
    pub snippet: Snippet,
}

/// What a score is made of: each part between 0 and 1 among the hits of one query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ScoreParts {
    /// Words in common, here and around.
    pub text: f32,
    /// Likeness of the whole.
    pub pooled: f32,
    /// Likeness word by word.
    pub late: f32,
    /// How much the session is about it.
    pub session: f32,
    /// How much of the name of who said it is in the query.
    pub author: f32,
    /// Likeness to the model that compared the first hits again, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contextual: Option<f32>,
}

/// The hits of a query, the best first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueryResults {
    /// The hits.
    pub hits: Vec<Hit>,
    /// The position up to which the store was searched.
    pub watermark: u64,
    /// What was searched for instead, when nothing had the words as they were typed.
    pub corrected: Option<String>,
    /// What came of comparing the first hits again, where a model was to.
    #[serde(rename = "compared")]
    pub rerank: Option<RerankReport>,
}
