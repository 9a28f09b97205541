//! The first lines of a transcript: which session, when, with whom.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use throughline_model::{AgentRef, SessionHeader, SessionId, SessionInfo, Timestamp};

use super::escape::to_one_line;

/// What a transcript says of its session before anything that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptHeader {
    /// What to call the session, where it has no agent to be called after.
    pub title: String,
    /// The session.
    pub session: SessionId,
    /// When it was made.
    pub created_at: Timestamp,
    /// The agent it is with, which is the one to resume it with.
    pub agent: Option<AgentRef>,
    /// The agent it began with, where that is another.
    pub first_agent: Option<AgentRef>,
    /// The session it came from.
    pub resumed_from: Option<SessionId>,
    /// Where the transcript of that session is.
    pub previous_session: Option<String>,
    /// How many queries it has.
    pub total_queries: u64,
}

impl TranscriptHeader {
    /// The head of a session's transcript. No card knows where the parent's transcript is.
    pub fn new(birth: &SessionHeader, card: &SessionInfo) -> Self {
        Self {
            title: card.title().to_owned(),
            session: card.id.clone(),
            created_at: card.created_at,
            agent: card.agent.clone(),
            first_agent: birth.agent.clone(),
            resumed_from: card.lineage.parent().cloned(),
            previous_session: None,
            total_queries: card.queries,
        }
    }

    /// The name of the agent it is with.
    pub(super) fn speaker(&self) -> String {
        speaker_name(self.agent.as_ref())
    }

    /// The name that the first answers are marked with.
    pub(super) fn first_speaker(&self) -> String {
        speaker_name(self.first_agent.as_ref().or(self.agent.as_ref()))
    }

    pub(super) fn write(&self, out: &mut impl Write, zone: &TimeZone) -> io::Result<()> {
        let title = match &self.agent {
            Some(_) => self.speaker(),
            None => to_one_line(&self.title),
        };
        let created = self.created_at.to_zoned(zone.clone());
        writeln!(out, "# {title} Conversation\n")?;
        writeln!(out, "**Session ID:** {}", self.session)?;
        writeln!(
            out,
            "**Date:** {}",
            created.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z")
        )?;
        if let Some(agent) = &self.agent {
            writeln!(out, "**Agent:** {}", self.speaker())?;
            if let Some(path) = &agent.path {
                writeln!(out, "**Agent Path:** {}", to_one_line(path))?;
            }
        }
        if let Some(parent) = &self.resumed_from {
            writeln!(out, "**Resumed From:** {parent}")?;
        }
        if let Some(path) = &self.previous_session {
            writeln!(out, "**Previous Session:** {}", to_one_line(path))?;
        }
        writeln!(out, "**Total Queries:** {}\n\n---\n", self.total_queries)
    }
}

/// What answers are marked with where no agent is known.
pub(super) const DEFAULT_SPEAKER: &str = "Assistant";

/// An agent's name as a label can have it.
pub(super) fn speaker_name(agent: Option<&AgentRef>) -> String {
    let plain = agent.map_or(String::new(), |agent| agent.name.replace('*', " "));
    match to_one_line(&plain) {
        empty if empty.is_empty() => DEFAULT_SPEAKER.to_owned(),
        name => name,
    }
}
