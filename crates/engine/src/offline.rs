//! The offline agent: answers in a session from stored content, without a model.

use async_trait::async_trait;
use jiff::tz::TimeZone;
use throughline_llm::{
    Answer, Delta, Model, ModelError, ModelRequest, OFFLINE_MODEL, OFFLINE_PROVIDER,
    OfflineContext, OfflineModel, OfflineQuery, PartialAnswer,
};
use throughline_model::{Content, Note};

use crate::{Error, Session};

/// The offline agent bound to a session. It loads its context only when it is called:
/// by then the request has been built, and the same search has been made already.
#[derive(Debug)]
pub(crate) struct SessionOfflineModel<'a> {
    /// The session.
    pub(crate) session: &'a Session,
    /// The message to answer.
    pub(crate) message: &'a Content,
    /// The time zone in which times are given.
    pub(crate) zone: &'a TimeZone,
}

#[async_trait]
impl Model for SessionOfflineModel<'_> {
    fn name(&self) -> &str {
        OFFLINE_MODEL
    }

    fn provider(&self) -> &str {
        OFFLINE_PROVIDER
    }

    async fn answer(
        &self,
        request: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let agent = self.session.offline_agent(self.message, self.zone).await;
        let agent = agent.map_err(|error| PartialAnswer {
            error: ModelError::Unavailable {
                provider: "the offline agent".to_owned(),
                source: error.into(),
            },
            content: Content::default(),
            usage: None,
        })?;
        agent.answer(request, on_delta).await
    }
}

impl Session {
    /// Returns the agent that answers a message in this session without a model. Times
    /// are given in `zone`.
    pub async fn offline_agent(
        &self,
        message: &Content,
        zone: &TimeZone,
    ) -> Result<OfflineModel, Error> {
        let state = self.record().await?.state;
        let texts = |notes: &[Note]| notes.iter().map(|note| note.text.clone()).collect();
        let mut context = OfflineContext {
            pins: texts(&state.pins),
            decisions: texts(&state.decisions),
            ..OfflineContext::default()
        };
        let message = message.to_text();
        match OfflineQuery::for_message(&message) {
            OfflineQuery::Nothing => {}
            OfflineQuery::LastSummary => {
                let last = self.last_summary().await?;
                context.summary = last
                    .map(|checkpoint| checkpoint.summary)
                    .unwrap_or_default();
            }
            OfflineQuery::Summary => context.summary = self.summarize_now().await?,
            OfflineQuery::Excerpts => context.excerpts = self.find_quotes(&message, zone).await?,
        }
        Ok(OfflineModel::with_context(context))
    }
}
