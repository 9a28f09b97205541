//! The chain: a new session that goes on from another's summary, and knows of no more.

use throughline_context::{RequestMessage, Restoration, render_restoration_prompt};
use throughline_llm::{Delta, Model, ModelError, ModelRequest};
use throughline_model::{
    Body, Checkpoint, Content, Lineage, Role, Seq, SessionId, SessionInfo, SessionRestore, Summary,
    Timestamp, Usage,
};
use throughline_store::Expect;

use crate::{ConflictPolicy, Error, NewSession, Session, Throughline};

/// What wrote the checkpoint that a continued session starts with.
const RESTORED_BY: &str = "restored";

/// What a new session goes on from: another one, or what is left of it in a transcript.
#[derive(Clone, Debug)]
pub struct ParentSession {
    /// Its session.
    pub session: SessionId,
    /// When it was, where that is known.
    pub date: Option<Timestamp>,
    /// How often the user asked in it.
    pub queries: u64,
    /// What it took.
    pub tokens: u64,
    /// The session before it.
    pub resumed_from: Option<SessionId>,
    /// Where its transcript is.
    pub transcript: Option<String>,
    /// What it came to.
    pub summary: Summary,
}

impl ParentSession {
    fn from_info(card: &SessionInfo, transcript: Option<String>, summary: Summary) -> Self {
        Self {
            session: card.id.clone(),
            date: Some(card.last_activity),
            queries: card.queries,
            tokens: card.tokens.total(),
            resumed_from: match &card.lineage {
                Lineage::Continued { session } => Some(session.clone()),
                _ => None,
            },
            transcript,
            summary,
        }
    }

    /// What the agent is told.
    pub fn prompt(&self) -> String {
        render_restoration_prompt(&Restoration {
            date: self.date,
            session: &self.session,
            queries: self.queries,
            tokens: self.tokens,
            resumed_from: self.resumed_from.as_ref(),
            transcript: self.transcript.as_deref(),
            summary: &self.summary,
        })
    }
}

/// What an agent said to what it was told of an earlier session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Its words.
    pub text: String,
    /// What the provider said they cost.
    pub usage: Option<Usage>,
    /// How long they took, in milliseconds.
    pub latency_ms: Option<u64>,
}

impl Throughline {
    /// Asks a model to acknowledge what an earlier session came to.
    pub async fn request_acknowledgement(
        &self,
        parent: &ParentSession,
        agent: Option<&str>,
        model: &dyn Model,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Acknowledgement, ModelError> {
        let said = |role, text: &str| RequestMessage {
            role,
            content: Content::text(text),
            breakpoints: Vec::new(),
        };
        let mut messages: Vec<_> = agent
            .map(|text| said(Role::System, text))
            .into_iter()
            .collect();
        messages.push(said(Role::User, &parent.prompt()));
        let ask = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        let asked_at = self.now();
        let (text, usage) = match model.answer(&ask, tell).await {
            Ok(answer) => (answer.content.to_text().into_owned(), answer.usage),
            // Whatever came of it is better than nothing.
            Err(broken) if !broken.content.0.is_empty() => {
                (broken.content.to_text().into_owned(), broken.usage)
            }
            Err(broken) => return Err(broken.error),
        };
        let latency = self.now().duration_since(asked_at).as_millis();
        Ok(Acknowledgement {
            text,
            usage,
            latency_ms: u64::try_from(latency).ok(),
        })
    }

    /// Makes a session that goes on from what an earlier one came to: n−1, and no
    /// further back.
    ///
    /// It starts with what the agent was told and said to it, as a `restored` entry, and
    /// with the summary as its first checkpoint.
    pub async fn continue_from(
        &self,
        parent: &ParentSession,
        new: NewSession,
        acknowledgement: Option<Acknowledgement>,
    ) -> Result<Session, Error> {
        let session = self
            .create(NewSession {
                continued_from: Some(parent.session.clone()),
                ..new
            })
            .await?;
        let said = acknowledgement.unwrap_or_default();
        let restored = SessionRestore {
            from: parent.session.clone(),
            prompt: parent.prompt(),
            acknowledgement: Some(said.text).filter(|text| !text.is_empty()),
            transcript: parent.transcript.clone(),
            usage: said.usage,
            latency_ms: said.latency_ms,
        };
        let summary = Checkpoint {
            covers: Seq(1),
            summary: parent.summary.clone(),
            by: RESTORED_BY.to_owned(),
            messages: 0,
            oldest: None,
            newest: None,
            usage: None,
        };
        let entries = vec![
            session.new_entry(Body::Restored(restored)),
            session.new_entry(summary),
        ];
        session
            .append_all(entries, Expect::Any, ConflictPolicy::Reject)
            .await?;
        Ok(session)
    }
}

impl Session {
    /// This session as what a new one goes on from; it must have a summary.
    pub async fn as_parent(&self, transcript: Option<String>) -> Result<ParentSession, Error> {
        let card = self.record().await?.info;
        match self.last_summary().await? {
            Some(known) => Ok(ParentSession::from_info(&card, transcript, known.summary)),
            None => Err(Error::NoSummary(self.id().clone())),
        }
    }

    /// Makes a session that goes on from this one's last summary, without a word from
    /// the agent.
    pub async fn continue_from_summary(
        &self,
        new: NewSession,
        transcript: Option<&str>,
    ) -> Result<Session, Error> {
        let parent = self.as_parent(transcript.map(ToOwned::to_owned)).await?;
        let new = self.inherit_defaults(new).await?;
        self.tl.continue_from(&parent, new, None).await
    }

    /// A new session of the same agent, project and folder as this one.
    pub async fn inherit_defaults(&self, new: NewSession) -> Result<NewSession, Error> {
        let card = self.record().await?.info;
        Ok(NewSession {
            agent: new.agent.or(card.agent),
            project: new.project.or(card.project),
            workspace: new.workspace.or(card.workspace),
            ..new
        })
    }
}
