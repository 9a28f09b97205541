//! What the offline agent is told before it answers.

use async_trait::async_trait;
use jiff::tz::TimeZone;
use throughline_llm::{
    Answer, Ask, Broken, Delta, Known, Model, ModelError, Needs, OFFLINE, OFFLINE_PROVIDER, Offline,
};
use throughline_model::{Content, Noted};

use crate::{Error, Session};

/// The offline agent, asked in a session. It looks up what it needs to know once it is
/// asked: by then the request is made, and the same has been looked for already.
#[derive(Debug)]
pub(crate) struct OfflineHere<'a> {
    /// Where.
    pub(crate) session: &'a Session,
    /// What it answers.
    pub(crate) message: &'a Content,
    /// Where times are told.
    pub(crate) zone: &'a TimeZone,
}

#[async_trait]
impl Model for OfflineHere<'_> {
    fn name(&self) -> &str {
        OFFLINE
    }

    fn provider(&self) -> &str {
        OFFLINE_PROVIDER
    }

    async fn answer(
        &self,
        ask: &Ask<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, Broken> {
        let agent = self.session.offline(self.message, self.zone).await;
        let agent = agent.map_err(|error| Broken {
            error: ModelError::Unavailable {
                provider: "the offline agent".to_owned(),
                source: error.into(),
            },
            so_far: Content::default(),
            usage: None,
        })?;
        agent.answer(ask, tell).await
    }
}

impl Session {
    /// The agent that answers a message here where there is no model. Times are told in
    /// `zone`.
    pub async fn offline(&self, message: &Content, zone: &TimeZone) -> Result<Offline, Error> {
        let standing = self.record().await?.standing;
        let texts = |noted: &[Noted]| noted.iter().map(|noted| noted.text.clone()).collect();
        let mut known = Known {
            pins: texts(&standing.pins),
            decisions: texts(&standing.decisions),
            ..Known::default()
        };
        let message = message.to_text();
        match Needs::of(&message) {
            Needs::Nothing => {}
            Needs::LastSummary => {
                let last = self.last_summary().await?;
                known.summary = last.map(|known| known.summary).unwrap_or_default();
            }
            Needs::Summary => known.summary = self.summary_now().await?,
            Needs::Quotes => known.quotes = self.quotes(&message, zone).await?,
        }
        Ok(Offline::knowing(known))
    }
}
