//! The replies of the mock provider.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::Fault;

/// One reply.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// The content blocks, in order.
    #[serde(rename = "said")]
    pub blocks: Vec<ReplyBlock>,
    /// The reported token usage.
    pub usage: TokenUsage,
    /// The stop reason in the provider's terms [default: derived from the blocks].
    pub stop: Option<String>,
    /// The delay before each delta, in milliseconds.
    pub delay_ms: u64,
    /// The fault to inject.
    pub fault: Option<Fault>,
}

/// A content block of a reply.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyBlock {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking {
        /// The text of the thinking block.
        text: String,
        /// Its signature.
        #[serde(default)]
        signature: String,
    },
    /// A tool call.
    Call {
        /// The call's id.
        id: String,
        /// The name of the tool.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// A provider-specific block, sent unchanged.
    Raw(Value),
}

/// The reported token usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenUsage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
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
    /// Creates a reply with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().with_block(ReplyBlock::Text(text.into()))
    }

    /// Creates a reply with a fault.
    pub fn fault(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::text("These words may not all arrive.")
        }
    }

    /// Adds a block.
    #[must_use]
    pub fn with_block(mut self, block: ReplyBlock) -> Self {
        self.blocks.push(block);
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_call(self, id: &str, name: &str, input: Value) -> Self {
        self.with_block(ReplyBlock::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
        })
    }

    /// Sets the delay before each delta.
    #[must_use]
    pub fn with_delay(mut self, pause: Duration) -> Self {
        self.delay_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self
    }
}
