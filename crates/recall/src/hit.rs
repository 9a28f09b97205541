//! The results of a query.

use serde::Serialize;
use throughline_model::{Role, Seq, SessionId, Timestamp};

use crate::{RerankReport, Snippet};

/// A passage that matches a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The session that contains it.
    pub session: SessionId,
    /// Its number in the session.
    pub seq: Seq,
    /// Its id in another system.
    pub external_id: Option<String>,
    /// The role of its author.
    pub role: Role,
    /// The author's name.
    pub author: Option<String>,
    /// When it was written.
    pub at: Timestamp,
    /// The full text of the entry.
    pub text: String,
    /// How well it matches, relative to the other hits of the same query.
    pub score: f32,
    /// The parts of the score.
    #[serde(rename = "why")]
    pub score_parts: ScoreParts,
    /// The best-matching excerpt of the text.
    pub snippet: Snippet,
}

/// The parts of a score, each scaled to 0–1 among the hits of one query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ScoreParts {
    /// Full-text score (BM25), including neighboring passages.
    pub text: f32,
    /// Similarity of the pooled vectors.
    pub pooled: f32,
    /// Token-by-token similarity (late interaction).
    pub late: f32,
    /// How relevant the session as a whole is.
    pub session: f32,
    /// How much of the author's name is in the query.
    pub author: f32,
    /// Score of the reranker, if one scored this hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contextual: Option<f32>,
}

/// The hits of a query, the best first, and how they were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueryResults {
    /// The hits.
    pub hits: Vec<Hit>,
    /// The store position up to which entries were searched.
    pub watermark: u64,
    /// The corrected query, if nothing matched the words as typed.
    pub corrected: Option<String>,
    /// The outcome of reranking, if a reranker was used.
    #[serde(rename = "compared")]
    pub rerank: Option<RerankReport>,
}
