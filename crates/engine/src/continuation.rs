//! Session continuation: starts a new session from the summary of an earlier one.
//!
//! The new session receives the summary of its parent only, not of the parent's own
//! ancestors.

use throughline_context::{RequestMessage, Restoration, render_restoration_prompt};
use throughline_llm::{Delta, Model, ModelError, ModelRequest};
use throughline_model::{
    Body, Checkpoint, Content, Lineage, Role, Seq, SessionId, SessionInfo, SessionRestore, Summary,
    Timestamp, Usage,
};
use throughline_store::Expect;

use crate::{ConflictPolicy, Error, NewSession, Session, Throughline};

/// The author recorded for the checkpoint that a continued session starts with.
const RESTORED_BY: &str = "restored";

/// The session that a new one continues from, read from the store or from a transcript.
#[derive(Clone, Debug)]
pub struct ParentSession {
    /// The parent's id.
    pub session: SessionId,
    /// Its last activity, if known.
    pub date: Option<Timestamp>,
    /// The number of user messages in it.
    pub queries: u64,
    /// The tokens it used.
    pub tokens: u64,
    /// The session that the parent itself continued from.
    pub resumed_from: Option<SessionId>,
    /// The path of its transcript.
    pub transcript: Option<String>,
    /// Its summary.
    pub summary: Summary,
}

impl ParentSession {
    fn from_info(info: &SessionInfo, transcript: Option<String>, summary: Summary) -> Self {
        Self {
            session: info.id.clone(),
            date: Some(info.last_activity),
            queries: info.queries,
            tokens: info.tokens.total(),
            resumed_from: match &info.lineage {
                Lineage::Continued { session } => Some(session.clone()),
                _ => None,
            },
            transcript,
            summary,
        }
    }

    /// Renders the prompt that introduces the parent's summary to the agent.
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

/// An agent's reply to the restoration prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The text of the reply.
    pub text: String,
    /// The token usage that the provider reported.
    pub usage: Option<Usage>,
    /// The response time in milliseconds.
    pub latency_ms: Option<u64>,
}

impl Throughline {
    /// Asks a model to acknowledge the summary of an earlier session.
    pub async fn request_acknowledgement(
        &self,
        parent: &ParentSession,
        agent: Option<&str>,
        model: &dyn Model,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Acknowledgement, ModelError> {
        let message = |role, text: &str| RequestMessage {
            role,
            content: Content::text(text),
            breakpoints: Vec::new(),
        };
        let mut messages: Vec<_> = agent
            .map(|text| message(Role::System, text))
            .into_iter()
            .collect();
        messages.push(message(Role::User, &parent.prompt()));
        let request = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        let asked_at = self.now();
        let (text, usage) = match model.answer(&request, on_delta).await {
            Ok(answer) => (answer.content.to_text().into_owned(), answer.usage),
            // A partial acknowledgement is better than none.
            Err(partial) if !partial.content.0.is_empty() => {
                (partial.content.to_text().into_owned(), partial.usage)
            }
            Err(partial) => return Err(partial.error),
        };
        let latency = self.now().duration_since(asked_at).as_millis();
        Ok(Acknowledgement {
            text,
            usage,
            latency_ms: u64::try_from(latency).ok(),
        })
    }

    /// Creates a session that continues from an earlier one (n−1, no further back).
    ///
    /// It starts with a `restored` entry, which holds the prompt and the agent's
    /// acknowledgement, and with the summary as its first checkpoint.
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
        let acknowledgement = acknowledgement.unwrap_or_default();
        let restored = SessionRestore {
            from: parent.session.clone(),
            prompt: parent.prompt(),
            acknowledgement: Some(acknowledgement.text).filter(|text| !text.is_empty()),
            transcript: parent.transcript.clone(),
            usage: acknowledgement.usage,
            latency_ms: acknowledgement.latency_ms,
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
    /// Returns this session as a parent to continue from; fails if it has no summary.
    pub async fn as_parent(&self, transcript: Option<String>) -> Result<ParentSession, Error> {
        let info = self.record().await?.info;
        match self.last_summary().await? {
            Some(checkpoint) => Ok(ParentSession::from_info(
                &info,
                transcript,
                checkpoint.summary,
            )),
            None => Err(Error::NoSummary(self.id().clone())),
        }
    }

    /// Creates a session that continues from this one's last summary, without asking a
    /// model for an acknowledgement.
    pub async fn continue_from_summary(
        &self,
        new: NewSession,
        transcript: Option<&str>,
    ) -> Result<Session, Error> {
        let parent = self.as_parent(transcript.map(ToOwned::to_owned)).await?;
        let new = self.inherit_defaults(new).await?;
        self.tl.continue_from(&parent, new, None).await
    }

    /// Fills in agent, project and workspace of a new session from this one.
    pub async fn inherit_defaults(&self, new: NewSession) -> Result<NewSession, Error> {
        let info = self.record().await?.info;
        Ok(NewSession {
            agent: new.agent.or(info.agent),
            project: new.project.or(info.project),
            workspace: new.workspace.or(info.workspace),
            ..new
        })
    }
}
