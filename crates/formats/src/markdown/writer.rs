//! Writes a transcript, entry by entry.
//!
//! A query and everything up to the next one is a section. Other events are written in
//! place, as notes; a checkpoint in the middle of an answer is deferred until the answer is
//! complete, so that the answer stays in one piece.
//!
//! Invariant: only the figures of the open section and its deferred checkpoints are held in
//! memory.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use throughline_model::format::format_thousands;
use throughline_model::{
    Block, Body, Checkpoint, Content, Entry, Message, Role, SessionRestore, Summary, Timestamp,
    Tombstone,
};

use super::TranscriptHeader;
use super::escape::{EscapeContext, SYSTEM_PREFIX, to_one_line};
use super::footer::Footer;
use super::header::speaker_name;
use super::notes::{describe_entry, format_note};
use super::render_blocks::{render_block, render_quote};

/// Writes the transcript of one session.
#[derive(Debug)]
pub struct MarkdownWriter<W: Write> {
    out: W,
    zone: TimeZone,
    /// The agent named in the header, whose label is escaped in answers.
    agent: String,
    /// The current agent.
    speaker: String,
    queries: u64,
    section: Option<OpenSection>,
    pending_checkpoints: Vec<(Timestamp, Footer, String)>,
}

/// The open section.
#[derive(Debug, Default)]
struct OpenSection {
    /// Whether the agent's label has been written.
    label_written: bool,
    footer: Footer,
}

impl<W: Write> MarkdownWriter<W> {
    /// Starts a transcript. Times are shown in `zone`.
    pub fn new(mut out: W, head: &TranscriptHeader, zone: TimeZone) -> io::Result<Self> {
        head.write(&mut out, &zone)?;
        Ok(Self {
            out,
            zone,
            agent: head.speaker(),
            speaker: head.first_speaker(),
            queries: 0,
            section: None,
            pending_checkpoints: Vec::new(),
        })
    }

    /// Writes an entry.
    pub fn write_entry(&mut self, entry: &Entry) -> io::Result<()> {
        match &entry.body {
            Body::Message(message) => self.write_message(entry, message),
            Body::Erased(tombstone) if tombstone.erased_kind == "message" => {
                self.write_erased(entry, tombstone)
            }
            Body::Checkpoint(checkpoint) => {
                let mut footer = Footer::default();
                footer.add(checkpoint.usage, None);
                self.pending_checkpoints
                    .push((entry.at, footer, describe_checkpoint(checkpoint)));
                match self.section {
                    Some(_) => Ok(()),
                    None => self.close_section(),
                }
            }
            Body::Restored(restored) => self.write_restored(entry.at, restored),
            other => {
                if let Body::AgentSet(agent) = other {
                    self.speaker = speaker_name(Some(agent));
                }
                let line = format_note(&self.format_time(entry.at), &describe_entry(other));
                self.write_paragraph(&line)
            }
        }
    }

    /// Ends the transcript with its summary, flushes, and returns the writer.
    pub fn finish(mut self, summary: Option<&Summary>) -> io::Result<W> {
        self.close_section()?;
        if let Some(summary) = summary {
            writeln!(self.out, "{}", summary.to_block())?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_message(&mut self, entry: &Entry, message: &Message) -> io::Result<()> {
        match message.role {
            // Some systems send tool results in a user's message.
            Role::User if message.content.tool_results().next().is_none() => {
                self.write_query(entry, &message.content)?;
            }
            Role::System => self.write_system(entry.at, &message.content)?,
            Role::User | Role::Assistant | Role::Tool => {
                self.write_answer(entry.at, &message.content)?;
                if message.incomplete {
                    self.write_paragraph("[cut off]")?;
                }
            }
        }
        if let Some(section) = &mut self.section {
            section.footer.add(message.usage, message.latency_ms);
        }
        Ok(())
    }

    fn write_query(&mut self, entry: &Entry, content: &Content) -> io::Result<()> {
        self.queries += 1;
        self.begin_section(&format!("Query {}", self.queries), entry.at)?;
        let you = match entry.author.as_deref().map(sanitize_author) {
            Some(author) if !author.is_empty() => format!("You ({author})"),
            _ => "You".to_owned(),
        };
        self.write_content(&you, content, false)
    }

    fn write_system(&mut self, at: Timestamp, content: &Content) -> io::Result<()> {
        if self.section.is_none() {
            self.begin_section("Message", at)?;
        }
        let text = content.to_text();
        let quote = render_quote(&text);
        let quote = quote.strip_prefix('>').unwrap_or(&quote);
        self.write_paragraph(&format!("{SYSTEM_PREFIX}{quote}"))
    }

    fn write_answer(&mut self, at: Timestamp, content: &Content) -> io::Result<()> {
        if self.section.is_none() {
            self.begin_section("Message", at)?;
        }
        let answering = match &mut self.section {
            Some(section) => std::mem::replace(&mut section.label_written, true),
            None => false,
        };
        let speaker = self.speaker.clone();
        self.write_content(&speaker, content, answering)
    }

    /// Writes blocks, with a label before the first unless `goes_on`.
    fn write_content(&mut self, label: &str, content: &Content, goes_on: bool) -> io::Result<()> {
        let agent = self.agent.clone();
        let context = if self
            .section
            .as_ref()
            .is_some_and(|section| section.label_written)
        {
            EscapeContext::Answer { agent: &agent }
        } else {
            EscapeContext::User
        };
        let mut blocks = content.0.iter().peekable();
        if !goes_on {
            let first = blocks.next_if(|block| matches!(block, Block::Text(_)));
            match first.and_then(|block| render_block(block, context)) {
                Some(text) => self.write_paragraph(&format!("**{label}:** {text}"))?,
                None => self.write_paragraph(&format!("**{label}:**"))?,
            }
        }
        for block in blocks {
            if let Some(text) = render_block(block, context) {
                self.write_paragraph(&text)?;
            }
        }
        Ok(())
    }

    fn write_erased(&mut self, entry: &Entry, tombstone: &Tombstone) -> io::Result<()> {
        let text = match &tombstone.reason {
            Some(reason) => format!("[erased: {}]", to_one_line(reason)),
            None => "[erased]".to_owned(),
        };
        let content = Content::text(text);
        match tombstone.role {
            Some(Role::User) => self.write_query(entry, &content),
            Some(Role::System) => self.write_system(entry.at, &content),
            Some(Role::Assistant | Role::Tool) | None => self.write_answer(entry.at, &content),
        }
    }

    fn write_restored(&mut self, at: Timestamp, restored: &SessionRestore) -> io::Result<()> {
        self.begin_section("Session Restored", at)?;
        writeln!(self.out, "**Context:** Resumed from {}", restored.from)?;
        if let Some(path) = &restored.transcript {
            writeln!(self.out, "**Previous Session:** {}", to_one_line(path))?;
        }
        writeln!(self.out)?;
        if let Some(text) = &restored.acknowledgement {
            self.write_answer(at, &Content::text(text.clone()))?;
        }
        if let Some(section) = &mut self.section {
            section.footer.add(restored.usage, restored.latency_ms);
        }
        self.close_section()
    }

    /// Ends the open section and starts another.
    fn begin_section(&mut self, title: &str, at: Timestamp) -> io::Result<()> {
        self.close_section()?;
        self.section = Some(OpenSection::default());
        self.write_heading(title, at)
    }

    fn close_section(&mut self) -> io::Result<()> {
        if let Some(section) = self.section.take() {
            self.write_section_end(section.footer)?;
        }
        for (at, footer, text) in std::mem::take(&mut self.pending_checkpoints) {
            self.write_heading("Checkpoint", at)?;
            self.write_paragraph(&text)?;
            self.write_section_end(footer)?;
        }
        Ok(())
    }

    fn write_section_end(&mut self, footer: Footer) -> io::Result<()> {
        if let Some(line) = footer.render_line() {
            self.write_paragraph(&line)?;
        }
        self.write_paragraph("---")
    }

    fn write_heading(&mut self, title: &str, at: Timestamp) -> io::Result<()> {
        let time = self.format_time(at);
        writeln!(self.out, "## {title} ({time})")
    }

    fn write_paragraph(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{text}\n\n")
    }

    fn format_time(&self, at: Timestamp) -> String {
        let zoned = at.to_zoned(self.zone.clone());
        zoned.strftime("%H:%M:%S").to_string()
    }
}

/// Describes a checkpoint in one line.
fn describe_checkpoint(checkpoint: &Checkpoint) -> String {
    let messages = match checkpoint.messages {
        1 => "1 message".to_owned(),
        many => format!("{} messages", format_thousands(many)),
    };
    let by = to_one_line(&checkpoint.by);
    format!(
        "{messages} up to entry {} summarized by {by}",
        checkpoint.covers
    )
}

/// Returns an author's name in a form that is valid in a label.
fn sanitize_author(name: &str) -> String {
    to_one_line(&name.replace(['*', '(', ')', ':'], " "))
}
