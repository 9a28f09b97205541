//! The summarizer that uses a language model.

mod history;
mod prompt;
mod summary_answer;

use std::time::Duration;

use async_trait::async_trait;

use throughline_context::RequestMessage;
use throughline_model::{Content, Role};

use crate::{
    FinishReason, GeneratedSummary, Model, ModelError, ModelRequest, ResponseFormat,
    SamplingOptions, SummarizeError, Summarizer, SummaryRequest, summary_files::select_files,
};

pub use summary_answer::SummaryParseError;

/// Summarizes with a model, and accepts only answers in the requested format.
#[derive(Debug)]
pub struct ModelSummarizer<M: Model> {
    model: M,
    window: u64,
    timeout: Option<Duration>,
}

impl<M: Model> ModelSummarizer<M> {
    /// Creates a summarizer that sends `model` at most about 100,000 tokens, or three quarters
    /// of its context window if that is less.
    pub fn new(model: M) -> Self {
        let takes = model.window().map(|window| window / 4 * 3);
        Self {
            window: takes.map_or(100_000, |takes| takes.min(100_000)),
            model,
            timeout: None,
        }
    }

    /// Limits a request to about `tokens`; older and bulky parts are cut.
    #[must_use]
    pub fn with_window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }

    /// Sets a time limit for an answer.
    ///
    /// Needs a tokio runtime with time enabled. Without a limit, the model's own timeouts
    /// apply ([`ModelError::TimedOut`](crate::ModelError::TimedOut)).
    #[must_use]
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    fn unexpected_answer(&self, what: &str) -> ModelError {
        ModelError::InvalidResponse {
            provider: self.model.provider().to_owned(),
            reason: format!("unexpected {what}"),
        }
    }
}

fn request_message(role: Role, text: String) -> RequestMessage {
    RequestMessage {
        role,
        content: Content::text(text),
        breakpoints: Vec::new(),
    }
}

#[async_trait]
impl<M: Model> Summarizer for ModelSummarizer<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        let prompt = prompt::build_prompt(request, self.window);
        let messages = [
            request_message(Role::System, prompt::SYSTEM_PROMPT.to_owned()),
            request_message(Role::User, prompt),
        ];
        let model_request = ModelRequest {
            messages: &messages,
            options: &SamplingOptions {
                format: ResponseFormat::JsonIfPossible,
                ..SamplingOptions::NONE
            },
            ..ModelRequest::default()
        };
        let mut on_delta = |_| {};
        let answer = self.model.answer(&model_request, &mut on_delta);
        let answered = match self.timeout {
            None => answer.await,
            Some(limit) => tokio::time::timeout(limit, answer)
                .await
                .map_err(|_| SummarizeError::TimedOut(limit))?,
        };
        let answer = answered.map_err(|broken| SummarizeError::Model {
            source: broken.error,
            usage: broken.usage,
        })?;
        let usage = answer.usage;
        let failed = |source| SummarizeError::Model { source, usage };
        match answer.finish_reason {
            FinishReason::Completed | FinishReason::Other(_) => {}
            FinishReason::Length => return Err(failed(ModelError::Truncated)),
            FinishReason::ToolUse => return Err(failed(self.unexpected_answer("tool call"))),
            FinishReason::Refused => {
                let why = answer.content.to_text().into_owned();
                return Err(failed(ModelError::Refused(why)));
            }
        }
        let mut summary = summary_answer::parse_summary(&answer.content.to_text())
            .map_err(|source| SummarizeError::InvalidAnswer { source, usage })?;
        summary.files_touched = select_files(request);
        Ok(GeneratedSummary { summary, usage })
    }
}
