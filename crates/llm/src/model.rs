//! A language model: what it is asked, and what it answers.
//!
//! Chat and summaries go through the one trait. An answer is told as it arrives and
//! given whole at the end; what breaks gives back what had arrived.
//!
//! Invariant: the texts told are those of the answer, in its order.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline_context::RequestMessage;
use throughline_model::{Content, Json, ToolCall, Usage};

use crate::{ModelError, SamplingOption, SamplingOptions};

/// A model that answers.
#[async_trait]
pub trait Model: Debug + Send + Sync {
    /// What the provider calls it.
    fn name(&self) -> &str;

    /// Who serves it: `anthropic`, `openai`, `ollama`…
    fn provider(&self) -> &str;

    /// How many tokens it takes in all, where known.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Which of these terms it cannot be held to, where there is one. To ask it on such
    /// terms all the same makes no sense.
    fn unsupported_option(&self, terms: &SamplingOptions) -> Option<SamplingOption> {
        terms.first_set()
    }

    /// Answers, and tells of what arrives as it arrives.
    ///
    /// Dropping the future stops the answer.
    async fn answer(
        &self,
        ask: &ModelRequest<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer>;
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> &str {
        (**self).provider()
    }

    fn window(&self) -> Option<u64> {
        (**self).window()
    }

    fn unsupported_option(&self, terms: &SamplingOptions) -> Option<SamplingOption> {
        (**self).unsupported_option(terms)
    }

    async fn answer(
        &self,
        ask: &ModelRequest<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        (**self).answer(ask, tell).await
    }
}

/// What a model is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelRequest<'a> {
    /// The conversation, as [`throughline_context::build`] makes it.
    pub messages: &'a [RequestMessage],
    /// The tools it may call.
    pub tools: &'a [ToolSpec],
    /// On which terms it answers.
    pub options: &'a SamplingOptions,
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// What it takes, as JSON Schema.
    pub schema: Json,
}

/// A piece of an answer that has just arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More of what it says.
    Text(String),
    /// More of what it thinks.
    Thinking(String),
    /// A tool call, once it is whole.
    ToolCall(ToolCall),
    /// Nothing arrived; it is asked once more after a while.
    Retry {
        /// How long that is.
        after: Duration,
        /// What went wrong.
        reason: String,
        /// Which attempt failed, counted from 1.
        attempt: u32,
    },
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Text, thinking with its signature, tool calls and whatever else, in order.
    pub content: Content,
    /// What the provider said it cost.
    pub usage: Option<Usage>,
    /// The model as the provider named it, which may be more exact than the name asked.
    pub model: Option<String>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// It was finished.
    Completed,
    /// It waits for the results of tool calls.
    ToolUse,
    /// It grew too long.
    Length,
    /// The model or the provider would not go on.
    Refused,
    /// Something else, in the provider's words.
    Other(String),
}

/// An answer that did not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct PartialAnswer {
    /// Why.
    #[source]
    pub error: ModelError,
    /// What arrived before.
    pub content: Content,
    /// What the provider said it cost, if it came to that.
    pub usage: Option<Usage>,
}

impl From<ModelError> for PartialAnswer {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            content: Content::default(),
            usage: None,
        }
    }
}
