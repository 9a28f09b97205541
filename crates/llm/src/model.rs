//! The [`Model`] trait: a language model, its requests and its answers.
//!
//! Chat and summaries both use it. An answer is streamed as [`Delta`]s and returned as a
//! whole at the end; a failure returns the content received before it.
//!
//! Invariant: the emitted texts are those of the answer, in the same order.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline_context::RequestMessage;
use throughline_model::{Content, Json, ToolCall, Usage};

use crate::{ModelError, SamplingOption, SamplingOptions};

/// A language model.
#[async_trait]
pub trait Model: Debug + Send + Sync {
    /// Returns the provider's name for the model.
    fn name(&self) -> &str;

    /// Returns the provider: `anthropic`, `openai`, `ollama`…
    fn provider(&self) -> &str;

    /// Returns the context window in tokens, if known.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Returns the first of these options that the model does not support, if any. Callers
    /// must not send a request with such an option.
    fn unsupported_option(&self, options: &SamplingOptions) -> Option<SamplingOption> {
        options.first_set()
    }

    /// Answers a request, passing each part to `on_delta` as it arrives.
    ///
    /// Dropping the future cancels the answer.
    async fn answer(
        &self,
        request: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
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

    fn unsupported_option(&self, options: &SamplingOptions) -> Option<SamplingOption> {
        (**self).unsupported_option(options)
    }

    async fn answer(
        &self,
        request: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        (**self).answer(request, on_delta).await
    }
}

/// A request to a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelRequest<'a> {
    /// The messages, as [`throughline_context::build_request`] returns them.
    pub messages: &'a [RequestMessage],
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// Sampling options and response format.
    pub options: &'a SamplingOptions,
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Name of the tool.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its input.
    pub schema: Json,
}

/// Part of an answer that has just arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A complete tool call.
    ToolCall(ToolCall),
    /// The attempt failed before anything arrived; it is retried after a delay.
    Retry {
        /// The delay.
        after: Duration,
        /// What went wrong.
        reason: String,
        /// Which attempt failed, counted from 1.
        attempt: u32,
    },
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Text, thinking with its signature, tool calls and foreign blocks, in order.
    pub content: Content,
    /// Token usage reported by the provider.
    pub usage: Option<Usage>,
    /// The model name reported by the provider, which may be more specific than the requested.
    pub model: Option<String>,
    /// Why the answer ended.
    pub finish_reason: FinishReason,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The answer is complete.
    Completed,
    /// The model waits for the results of tool calls.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The model or the provider refused to continue.
    Refused,
    /// Another reason, as reported by the provider.
    Other(String),
}

/// An answer that failed before it was complete.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct PartialAnswer {
    /// Why it failed.
    #[source]
    pub error: ModelError,
    /// The content received before.
    pub content: Content,
    /// Token usage, if it was reported.
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
