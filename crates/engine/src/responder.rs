//! Who answers in a session: an agent, the model behind it or none, and how requests to
//! it are made. A program makes one; whatever serves sessions uses it.

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

/// Who answers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Responder {
    /// The model; none for the offline agent.
    pub model: Option<Arc<dyn Model>>,
    /// What the agent is and does.
    pub agent: Option<String>,
    /// By which policy requests are made.
    pub policy: Policy,
    /// The model's window.
    pub window: u64,
    /// How tokens are counted.
    pub encoding: Encoding,
    /// Project context, besides what was set in the session.
    pub documents: Vec<ContextDocument>,
    /// Who summarizes; none for the extractive summarizer.
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// On which terms the model answers.
    pub sampling: SamplingOptions,
    /// What becomes of the facts that summaries find.
    pub fact_proposals: ProposalMode,
}

impl Responder {
    /// What answers where no model is connected.
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

    /// Which of its terms the model cannot be held to, where there is one.
    pub fn first_unsupported_option(&self) -> Option<SamplingOption> {
        match &self.model {
            Some(model) => model.unsupported_option(&self.sampling),
            None => self.sampling.first_set(),
        }
    }

    /// The name of the model, where there is one.
    pub fn model_name(&self) -> Option<&str> {
        self.model.as_deref().map(Model::name)
    }

    /// How a request of this voice's is built.
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

    /// Answers what was said at an entry, the last message of a session's log. Times are
    /// told in `zone` where there is no model.
    pub async fn answer(
        &self,
        session: &Session,
        question: &Entry,
        zone: &TimeZone,
        tools: Option<&dyn Toolbox>,
        stop: Option<&Notify>,
        tell: EventSink<'_>,
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
        session.answer(question, &turn, tell).await
    }
}
