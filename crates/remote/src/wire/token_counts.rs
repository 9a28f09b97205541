//! Token counts.

use serde::{Deserialize, Serialize};
use throughline_model::{Seq, SessionId};

use super::Call;

/// What is known of the entries from one to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetTokenCounts {
    /// The session.
    pub session: SessionId,
    /// How they are counted.
    pub encoding: String,
    /// The first entry.
    pub from: Seq,
    /// The last.
    pub to: Seq,
}

impl Call for GetTokenCounts {
    const NAME: &'static str = "token_counts";
    type Answer = Vec<(Seq, u64)>;
}

/// Keeps counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutTokenCounts {
    /// The session.
    pub session: SessionId,
    /// How they were counted.
    pub encoding: String,
    /// What each entry costs.
    pub counts: Vec<(Seq, u64)>,
}

impl Call for PutTokenCounts {
    const NAME: &'static str = "put_token_counts";
    type Answer = ();
}
