//! The chain: a new session that goes on from another's summary, and knows of no more.

use throughline_context::{Restoration, restoration_prompt};
use throughline_model::{Body, Checkpoint, Restored, Seq};
use throughline_store::Expect;

use crate::{Conflict, Error, NewSession, Session};

/// What wrote the checkpoint that a continued session starts with.
const BY: &str = "restored";

impl Session {
    /// Makes a session that goes on from this one's last summary: n−1, and no further back.
    ///
    /// It starts with what the agent is told, as a `restored` entry, and with the summary
    /// as its first checkpoint. `transcript` is where this session's transcript is.
    pub async fn continued(
        &self,
        new: NewSession,
        transcript: Option<&str>,
    ) -> Result<Session, Error> {
        let card = self.record().await?.card;
        let Some((_, checkpoint)) = self.checkpoint().await? else {
            return Err(Error::NoSummary(self.id().clone()));
        };
        let prompt = restoration_prompt(&Restoration {
            date: card.last_activity,
            session: &card.id,
            queries: card.queries,
            tokens: card.tokens.total(),
            resumed_from: card.lineage.parent(),
            transcript,
            summary: &checkpoint.summary,
        });
        let new = NewSession {
            continued_from: Some(card.id.clone()),
            agent: new.agent.or(card.agent),
            project: new.project.or(card.project),
            workspace: new.workspace.or(card.workspace),
            ..new
        };
        let session = self.tl.create(new).await?;
        let restored = Restored {
            from: card.id,
            prompt,
            acknowledgement: None,
            transcript: transcript.map(ToOwned::to_owned),
            usage: None,
            latency_ms: None,
        };
        let summary = Checkpoint {
            covers: Seq(1),
            summary: checkpoint.summary,
            by: BY.to_owned(),
            messages: 0,
            oldest: None,
            newest: None,
            usage: None,
        };
        let entries = vec![
            session.entry(Body::Restored(restored)),
            session.entry(summary),
        ];
        session
            .append_all(entries, Expect::Any, Conflict::Reject)
            .await?;
        Ok(session)
    }
}
