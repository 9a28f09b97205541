//! What is answered.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::Fault;

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// What is said, in order.
    pub blocks: Vec<ReplyBlock>,
    /// What it cost.
    pub usage: TokenUsage,
    /// Why it ended, in the wire's own words; none for what follows from what is said.
    pub stop: Option<String>,
    /// How long to wait before each piece, in milliseconds.
    pub delay_ms: u64,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyBlock {
    /// Words.
    Text(String),
    /// Thoughts.
    Thinking {
        /// What is thought.
        text: String,
        /// The proof of it.
        #[serde(default)]
        signature: String,
    },
    /// A tool is to be run.
    Call {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// What it is given.
        input: Value,
    },
    /// A block of the provider's own, sent as it is.
    Raw(Value),
}

/// Tokens, as they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenUsage {
    /// Sent, cached ones included.
    pub input: u64,
    /// Generated.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
}

impl Default for TokenUsage {
    fn default() -> Self {
        Self {
            input: 100,
            output: 20,
            cache_read: 0,
            cache_write: 0,
        }
    }
}

impl Reply {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().with_block(ReplyBlock::Text(text.into()))
    }

    /// An answer that does not come.
    pub fn fault(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::text("These words may not all arrive.")
        }
    }

    /// With one more piece.
    #[must_use]
    pub fn with_block(mut self, said: ReplyBlock) -> Self {
        self.blocks.push(said);
        self
    }

    /// With a tool call.
    #[must_use]
    pub fn and_call(self, id: &str, name: &str, input: Value) -> Self {
        self.with_block(ReplyBlock::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
        })
    }

    /// With a pause before each piece.
    #[must_use]
    pub fn with_delay(mut self, pause: Duration) -> Self {
        self.delay_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self
    }
}
