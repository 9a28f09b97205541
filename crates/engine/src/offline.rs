//! What the offline agent is told before it answers.

use jiff::tz::TimeZone;
use throughline_llm::{Known, Needs, Offline};
use throughline_model::{Content, Noted};

use crate::{Error, Session};

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
