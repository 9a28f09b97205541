//! Reads a transcript, ours or the chat loop's.
//!
//! Missing parts are left out; the only error is a text that is not a transcript at all.
//! Text between the structural lines is taken as it is.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use throughline_model::{SUMMARY_START, Summary, SummaryError, Timestamp, Usage};

use super::escape::parse_label;
use super::footer::parse_grouped;
use super::header::DEFAULT_SPEAKER;
use super::section::{Heading, Query, Section, parse_heading};

/// A session as read from its transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The title, without `Conversation`.
    pub title: Option<String>,
    /// The session id.
    pub session_id: Option<String>,
    /// The date as written; see [`Transcript::started_at`].
    pub date: Option<String>,
    /// The agent's name.
    pub agent: Option<String>,
    /// Path of the agent file.
    pub agent_path: Option<String>,
    /// The session it was resumed from.
    pub resumed_from: Option<String>,
    /// Path of that session's transcript.
    pub previous_session: Option<String>,
    /// Number of queries according to the header.
    pub total_queries: Option<u64>,
    /// Tokens of all answers, including restorations.
    pub total_tokens: u64,
    /// How it was resumed, if it was.
    pub restored: Option<Restoration>,
    /// The queries with their answers.
    pub queries: Vec<Query>,
    /// The summary at the end, or why there is none.
    pub summary: Result<Summary, SummaryError>,
}

/// The restoration of a session, and the agent's acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restoration {
    /// The time of day.
    pub time: Time,
    /// Where it was restored from.
    pub context: Option<String>,
    /// The agent's acknowledgement.
    pub acknowledgement: String,
    /// Token usage of the acknowledgement.
    pub usage: Option<Usage>,
}

/// Why a text is not a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// Both the title and the session id are missing.
    #[error("not a transcript: it has neither a `# … Conversation` title nor a `**Session ID:**`")]
    NotATranscript,
}

impl Transcript {
    /// Returns when it started. A date without an offset is in `zone`.
    pub fn started_at(&self, zone: &TimeZone) -> Option<Timestamp> {
        let date = self.date.as_deref()?;
        date.parse::<Timestamp>().ok().or_else(|| {
            let civil: DateTime = date.parse().ok()?;
            Some(civil.to_zoned(zone.clone()).ok()?.timestamp())
        })
    }
}

/// Reads a transcript.
pub fn read_transcript(text: &str) -> Result<Transcript, TranscriptError> {
    let summary = Summary::from_transcript(text);
    // A marker followed by queries is part of a message.
    let body = match text.rfind(SUMMARY_START) {
        Some(start)
            if !text[start..]
                .lines()
                .any(|line| parse_heading(line).is_some()) =>
        {
            &text[..start]
        }
        _ => text,
    };
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let lines: Vec<&str> = body.lines().collect();
    let first_section = (lines.iter())
        .position(|line| parse_heading(line).is_some())
        .unwrap_or(lines.len());
    let mut transcript = parse_header(&lines[..first_section], summary)?;
    for section in split_sections(&lines[first_section..]) {
        add_section(&mut transcript, &section);
    }
    Ok(transcript)
}

fn parse_header(
    lines: &[&str],
    summary: Result<Summary, SummaryError>,
) -> Result<Transcript, TranscriptError> {
    // A rule ends the header; notes may follow before the first section.
    let end = lines
        .iter()
        .position(|line| line.trim_end() == "---")
        .unwrap_or(lines.len());
    let lines = &lines[..end];
    let field = |name: &str| {
        lines.iter().find_map(|line| match parse_label(line) {
            Some((label, value)) if label == name => {
                Some(value.trim().to_owned()).filter(|value| !value.is_empty())
            }
            _ => None,
        })
    };
    let title = lines.iter().find_map(|line| {
        let title = line.strip_prefix("# ")?.trim_end();
        title.strip_suffix(" Conversation").map(ToOwned::to_owned)
    });
    let session_id = field("Session ID");
    if title.is_none() && session_id.is_none() {
        return Err(TranscriptError::NotATranscript);
    }
    Ok(Transcript {
        title,
        session_id,
        date: field("Date"),
        agent: field("Agent"),
        agent_path: field("Agent Path"),
        resumed_from: field("Resumed From"),
        previous_session: field("Previous Session"),
        total_queries: field("Total Queries").and_then(|count| parse_grouped(&count)),
        total_tokens: 0,
        restored: None,
        queries: Vec::new(),
        summary,
    })
}

/// Splits the lines into sections at the headings.
fn split_sections<'a>(lines: &[&'a str]) -> Vec<Section<'a>> {
    let mut sections = Vec::new();
    let mut open: Option<(Heading, Time, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        if let Some((what, time)) = parse_heading(line) {
            if let Some((what, time, from)) = open.take() {
                sections.push(Section::new(what, time, &lines[from..index]));
            }
            open = Some((what, time, index + 1));
        }
    }
    if let Some((what, time, from)) = open {
        sections.push(Section::new(what, time, &lines[from..]));
    }
    sections
}

fn add_section(transcript: &mut Transcript, section: &Section<'_>) {
    let tokens = section.footer.tokens.unwrap_or(0);
    transcript.total_tokens = transcript.total_tokens.saturating_add(tokens);
    let agent = transcript.agent.as_deref().unwrap_or(DEFAULT_SPEAKER);
    match section.heading {
        Heading::Query(number) => transcript.queries.push(section.to_query(number, agent)),
        Heading::Other => {}
        Heading::Restored => {
            let context = section.field("Context");
            transcript.restored = Some(Restoration {
                time: section.time,
                context: context.map(ToOwned::to_owned),
                acknowledgement: section.answer_text(agent),
                usage: section.footer.usage,
            });
            // Some transcripts have this here instead of in the header.
            let parent = context
                .and_then(|context| context.strip_prefix("Resumed from "))
                .and_then(|rest| rest.split_whitespace().next());
            if transcript.resumed_from.is_none() {
                transcript.resumed_from = parent.map(ToOwned::to_owned);
            }
            if transcript.previous_session.is_none() {
                let path = section.field("Previous Session");
                transcript.previous_session = path.map(ToOwned::to_owned);
            }
        }
    }
}
