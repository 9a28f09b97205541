//! The responder: an agent, its model (or none) and how requests to it are built.
//!
//! The program creates one from its configuration; chat, server and other interfaces
//! answer messages with it.

use std::sync::Arc;

use jiff::tz::TimeZone;
use throughline_context::{ContextDocument, Encoding, Policy};
use throughline_llm::{Model, SamplingOption, SamplingOptions, Summarizer};
use throughline_model::{Content, Entry};
use tokio::sync::Notify;

use crate::offline::SessionOfflineModel;
use crate::{
    AnswerOptions, Error, EventSink, ProposalMode, RequestOptions, Session, Toolbox, TurnOutcome,
};

/// What answers messages in a session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Responder {
    /// The model; `None` for the offline agent.
    pub model: Option<Arc<dyn Model>>,
    /// The agent's instructions.
    pub agent: Option<String>,
    /// The policy by which requests are built.
    pub policy: Policy,
    /// The model's context window, in tokens.
    pub window: u64,
    /// The encoding that tokens are counted with.
    pub encoding: Encoding,
    /// Project context, in addition to the session's own documents.
    pub documents: Vec<ContextDocument>,
    /// The summarizer; `None` for the extractive one.
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// The sampling options for the model.
    pub sampling: SamplingOptions,
    /// How to handle facts that summaries propose.
    pub fact_proposals: ProposalMode,
}

impl Responder {
    /// Returns the responder for use without a model.
    pub fn offline() -> Self {
        Self {
            model: None,
            agent: None,
            policy: Policy::default(),
            window: 200_000,
            encoding: Encoding::Rough,
            documents: Vec::new(),
            summarizer: None,
            sampling: SamplingOptions::NONE,
            fact_proposals: ProposalMode::default(),
        }
    }

    /// Returns the first sampling option that the model does not support, if any.
    pub fn first_unsupported_option(&self) -> Option<SamplingOption> {
        match &self.model {
            Some(model) => model.unsupported_option(&self.sampling),
            None => self.sampling.first_set(),
        }
    }

    /// The model's name, if there is a model.
    pub fn model_name(&self) -> Option<&str> {
        self.model.as_deref().map(Model::name)
    }

    /// Returns the options for building a request.
    pub fn request_options<'a>(&'a self, message: Option<&'a Content>) -> RequestOptions<'a> {
        RequestOptions {
            policy: &self.policy,
            budget: None,
            window: self.window,
            encoding: self.encoding,
            agent: self.agent.as_deref(),
            documents: &self.documents,
            message,
            before: None,
            model: self.model_name(),
        }
    }

    /// Answers a message, which must be the last one in the session's log. Without a
    /// model, times are given in `zone`.
    pub async fn answer(
        &self,
        session: &Session,
        question: &Entry,
        zone: &TimeZone,
        tools: Option<&dyn Toolbox>,
        stop: Option<&Notify>,
        events: EventSink<'_>,
    ) -> Result<TurnOutcome, Error> {
        let empty = Content::default();
        let offline = SessionOfflineModel {
            session,
            message: question.message().map_or(&empty, |m| &m.content),
            zone,
        };
        let model: &dyn Model = match &self.model {
            Some(model) => model,
            None => &offline,
        };
        let turn = AnswerOptions {
            model,
            policy: &self.policy,
            window: self.window,
            encoding: self.encoding,
            agent: self.agent.as_deref(),
            documents: &self.documents,
            summarizer: self.summarizer.as_deref(),
            tools,
            sampling: &self.sampling,
            stop,
        };
        session.answer(question, &turn, events).await
    }
}
