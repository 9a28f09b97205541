//! Calls for token counts.

use serde::{Deserialize, Serialize};
use throughline_model::{Seq, SessionId};

use super::Call;

/// Gets the stored token counts of a range of entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetTokenCounts {
    /// The session.
    pub session: SessionId,
    /// The encoding that counts the tokens.
    pub encoding: String,
    /// The first entry.
    pub from: Seq,
    /// The last entry.
    pub to: Seq,
}

impl Call for GetTokenCounts {
    const NAME: &'static str = "token_counts";
    type Answer = Vec<(Seq, u64)>;
}

/// Stores token counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutTokenCounts {
    /// The session.
    pub session: SessionId,
    /// The encoding that counted the tokens.
    pub encoding: String,
    /// The number of tokens of each entry.
    pub counts: Vec<(Seq, u64)>,
}

impl Call for PutTokenCounts {
    const NAME: &'static str = "put_token_counts";
    type Answer = ();
}
