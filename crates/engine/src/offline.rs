//! What the offline agent is told before it answers.

use async_trait::async_trait;
use jiff::tz::TimeZone;
use throughline_llm::{
    Answer, Delta, Model, ModelError, ModelRequest, OFFLINE_MODEL, OFFLINE_PROVIDER,
    OfflineContext, OfflineModel, OfflineQuery, PartialAnswer,
};
use throughline_model::{Content, Note};

use crate::{Error, Session};

/// The offline agent, asked in a session. It looks up what it needs to know once it is
/// asked: by then the request is made, and the same has been looked for already.
#[derive(Debug)]
pub(crate) struct SessionOfflineModel<'a> {
    /// Where.
    pub(crate) session: &'a Session,
    /// What it answers.
    pub(crate) message: &'a Content,
    /// Where times are told.
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
        ask: &ModelRequest<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
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
        agent.answer(ask, tell).await
    }
}

impl Session {
    /// The agent that answers a message here where there is no model. Times are told in
    /// `zone`.
    pub async fn offline_agent(
        &self,
        message: &Content,
        zone: &TimeZone,
    ) -> Result<OfflineModel, Error> {
        let standing = self.record().await?.state;
        let texts = |noted: &[Note]| noted.iter().map(|noted| noted.text.clone()).collect();
        let mut known = OfflineContext {
            pins: texts(&standing.pins),
            decisions: texts(&standing.decisions),
            ..OfflineContext::default()
        };
        let message = message.to_text();
        match OfflineQuery::for_message(&message) {
            OfflineQuery::Nothing => {}
            OfflineQuery::LastSummary => {
                let last = self.last_summary().await?;
                known.summary = last.map(|known| known.summary).unwrap_or_default();
            }
            OfflineQuery::Summary => known.summary = self.summarize_now().await?,
            OfflineQuery::Excerpts => known.excerpts = self.find_quotes(&message, zone).await?,
        }
        Ok(OfflineModel::with_context(known))
    }
}
