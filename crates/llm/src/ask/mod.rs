//! The summarizer that asks a model.

mod answer;
mod history;
mod prompt;

use std::time::Duration;

use async_trait::async_trait;

use throughline_context::RequestMessage;
use throughline_model::{Content, Role};

use crate::{
    Ask, Brief, Form, Model, ModelError, Stop, SummarizeError, Summarizer, Terms, Written,
    files::files,
};

pub use answer::AnswerError;

/// Asks a model for a summary, and takes it only in the form asked for.
#[derive(Debug)]
pub struct ModelSummarizer<M: Model> {
    model: M,
    window: u64,
    limit: Option<Duration>,
}

impl<M: Model> ModelSummarizer<M> {
    /// A summarizer that asks `model`, sending it at most about 100,000 tokens, or three
    /// quarters of what it takes where that is less.
    pub fn new(model: M) -> Self {
        let takes = model.window().map(|window| window / 4 * 3);
        Self {
            window: takes.map_or(100_000, |takes| takes.min(100_000)),
            model,
            limit: None,
        }
    }

    /// Sends at most about `tokens` at once; what is older and bulky is cut.
    #[must_use]
    pub fn with_window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }

    /// Gives up on an answer after `limit`.
    ///
    /// Needs a tokio runtime whose timer is on. Without a limit it is left to the
    /// model to say [`ModelError::TimedOut`](crate::ModelError::TimedOut).
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    fn unasked(&self, what: &str) -> ModelError {
        ModelError::BadAnswer {
            provider: self.model.provider().to_owned(),
            why: format!("{what} that nobody asked for"),
        }
    }
}

fn said(role: Role, text: String) -> RequestMessage {
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

    async fn summarize(&self, brief: &Brief<'_>) -> Result<Written, SummarizeError> {
        let prompt = prompt::prompt(brief, self.window);
        let messages = [
            said(Role::System, prompt::SYSTEM.to_owned()),
            said(Role::User, prompt),
        ];
        let ask = Ask {
            messages: &messages,
            terms: &Terms {
                form: Form::JsonIfPossible,
                ..Terms::NONE
            },
            ..Ask::default()
        };
        let mut tell = |_| {};
        let asked = self.model.answer(&ask, &mut tell);
        let answered = match self.limit {
            None => asked.await,
            Some(limit) => tokio::time::timeout(limit, asked)
                .await
                .map_err(|_| SummarizeError::TimedOut(limit))?,
        };
        let answer = answered.map_err(|broken| SummarizeError::Model {
            source: broken.error,
            usage: broken.usage,
        })?;
        let usage = answer.usage;
        let failed = |source| SummarizeError::Model { source, usage };
        match answer.stop {
            Stop::Finished | Stop::Other(_) => {}
            Stop::Length => return Err(failed(ModelError::Cut)),
            Stop::ToolUse => return Err(failed(self.unasked("a tool call"))),
            Stop::Refused => {
                let why = answer.content.to_text().into_owned();
                return Err(failed(ModelError::Refused(why)));
            }
        }
        let mut summary = answer::parse(&answer.content.to_text())
            .map_err(|source| SummarizeError::Answer { source, usage })?;
        summary.files_touched = files(brief);
        Ok(Written { summary, usage })
    }
}
