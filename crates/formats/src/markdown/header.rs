//! The header of a transcript: session, date and agent.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use throughline_model::{AgentRef, SessionHeader, SessionId, SessionInfo, Timestamp};

use super::escape::to_one_line;

/// The header of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptHeader {
    /// Title of the session, used if it has no agent.
    pub title: String,
    /// The session id.
    pub session: SessionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The current agent, with which to resume it.
    pub agent: Option<AgentRef>,
    /// The first agent, if it is a different one.
    pub first_agent: Option<AgentRef>,
    /// The session it was resumed from.
    pub resumed_from: Option<SessionId>,
    /// Path of that session's transcript.
    pub previous_session: Option<String>,
    /// Number of queries.
    pub total_queries: u64,
}

impl TranscriptHeader {
    /// Creates the header of a session's transcript, without the parent's transcript path.
    pub fn new(header: &SessionHeader, info: &SessionInfo) -> Self {
        Self {
            title: info.title().to_owned(),
            session: info.id.clone(),
            created_at: info.created_at,
            agent: info.agent.clone(),
            first_agent: header.agent.clone(),
            resumed_from: info.lineage.parent().cloned(),
            previous_session: None,
            total_queries: info.queries,
        }
    }

    /// Returns the name of the current agent.
    pub(super) fn speaker(&self) -> String {
        speaker_name(self.agent.as_ref())
    }

    /// Returns the name that labels the first answers.
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

/// Label of answers if no agent is known.
pub(super) const DEFAULT_SPEAKER: &str = "Assistant";

/// Returns an agent's name in a form that is valid in a label.
pub(super) fn speaker_name(agent: Option<&AgentRef>) -> String {
    let plain = agent.map_or(String::new(), |agent| agent.name.replace('*', " "));
    match to_one_line(&plain) {
        empty if empty.is_empty() => DEFAULT_SPEAKER.to_owned(),
        name => name,
    }
}
