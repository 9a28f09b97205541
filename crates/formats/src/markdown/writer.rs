//! Writing a transcript, entry by entry.
//!
//! A query and everything up to the next one is a section. What happens in between is
//! told in place, in a line; a checkpoint made in the middle of an answer waits until
//! the answer is complete, so that it stays one answer.
//!
//! Invariant: nothing is held but the figures of the section that is open and the
//! checkpoints that wait for its end.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use throughline_model::glance::thousands;
use throughline_model::{
    Block, Body, Checkpoint, Content, Entry, Message, Restored, Role, Summary, Timestamp, Tombstone,
};

use super::TranscriptHead;
use super::escape::{SYSTEM, Voice, one_line};
use super::footer::Footer;
use super::head::speaker;
use super::notes::{note, note_line};
use super::pieces::{paragraphs, quoted};

/// Writes the transcript of one session.
#[derive(Debug)]
pub struct MarkdownWriter<W: Write> {
    out: W,
    zone: TimeZone,
    /// The agent as the header has it, whose label is escaped in answers.
    agent: String,
    /// The agent that speaks now.
    speaker: String,
    queries: u64,
    open: Option<Section>,
    waiting: Vec<(Timestamp, Footer, String)>,
}

/// The section that is being written.
#[derive(Debug, Default)]
struct Section {
    /// Whether the agent's label has been written.
    answering: bool,
    footer: Footer,
}

impl<W: Write> MarkdownWriter<W> {
    /// Starts a transcript. Times are shown in `zone`.
    pub fn new(mut out: W, head: &TranscriptHead, zone: TimeZone) -> io::Result<Self> {
        head.write(&mut out, &zone)?;
        Ok(Self {
            out,
            zone,
            agent: head.speaker(),
            speaker: head.first_speaker(),
            queries: 0,
            open: None,
            waiting: Vec::new(),
        })
    }

    /// Writes what an entry says.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        match &entry.body {
            Body::Message(message) => self.message(entry, message),
            Body::Erased(tombstone) if tombstone.of == "message" => self.erased(entry, tombstone),
            Body::Checkpoint(checkpoint) => {
                let mut footer = Footer::default();
                footer.add(checkpoint.usage, None);
                self.waiting
                    .push((entry.at, footer, summarized(checkpoint)));
                match self.open {
                    Some(_) => Ok(()),
                    None => self.close(),
                }
            }
            Body::Restored(restored) => self.restored(entry.at, restored),
            other => {
                if let Body::AgentSet(agent) = other {
                    self.speaker = speaker(Some(agent));
                }
                let line = note_line(&self.time(entry.at), &note(other));
                self.paragraph(&line)
            }
        }
    }

    /// Ends the transcript with its summary, flushes, and gives back what was written to.
    pub fn finish(mut self, summary: Option<&Summary>) -> io::Result<W> {
        self.close()?;
        if let Some(summary) = summary {
            writeln!(self.out, "{}", summary.to_block())?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn message(&mut self, entry: &Entry, message: &Message) -> io::Result<()> {
        match message.role {
            // A user's message with results in it is how some systems hand them over.
            Role::User if message.content.tool_results().next().is_none() => {
                self.query(entry, &message.content)?;
            }
            Role::System => self.system(entry.at, &message.content)?,
            Role::User | Role::Assistant | Role::Tool => {
                self.answer(entry.at, &message.content)?;
                if message.incomplete {
                    self.paragraph("[cut off]")?;
                }
            }
        }
        if let Some(section) = &mut self.open {
            section.footer.add(message.usage, message.latency_ms);
        }
        Ok(())
    }

    fn query(&mut self, entry: &Entry, content: &Content) -> io::Result<()> {
        self.queries += 1;
        self.begin(&format!("Query {}", self.queries), entry.at)?;
        let you = match entry.author.as_deref().map(author) {
            Some(author) if !author.is_empty() => format!("You ({author})"),
            _ => "You".to_owned(),
        };
        self.said(&you, content, false)
    }

    fn system(&mut self, at: Timestamp, content: &Content) -> io::Result<()> {
        if self.open.is_none() {
            self.begin("Message", at)?;
        }
        let text = content.to_text();
        let quote = quoted(&text);
        let quote = quote.strip_prefix('>').unwrap_or(&quote);
        self.paragraph(&format!("{SYSTEM}{quote}"))
    }

    fn answer(&mut self, at: Timestamp, content: &Content) -> io::Result<()> {
        if self.open.is_none() {
            self.begin("Message", at)?;
        }
        let answering = match &mut self.open {
            Some(section) => std::mem::replace(&mut section.answering, true),
            None => false,
        };
        let speaker = self.speaker.clone();
        self.said(&speaker, content, answering)
    }

    /// Writes blocks, with a label before the first unless it goes on.
    fn said(&mut self, label: &str, content: &Content, goes_on: bool) -> io::Result<()> {
        let agent = self.agent.clone();
        let voice = if self.open.as_ref().is_some_and(|section| section.answering) {
            Voice::Answer { agent: &agent }
        } else {
            Voice::You
        };
        let mut blocks = content.0.iter().peekable();
        if !goes_on {
            let first = blocks.next_if(|block| matches!(block, Block::Text(_)));
            match first.and_then(|block| paragraphs(block, voice)) {
                Some(text) => self.paragraph(&format!("**{label}:** {text}"))?,
                None => self.paragraph(&format!("**{label}:**"))?,
            }
        }
        for block in blocks {
            if let Some(text) = paragraphs(block, voice) {
                self.paragraph(&text)?;
            }
        }
        Ok(())
    }

    fn erased(&mut self, entry: &Entry, tombstone: &Tombstone) -> io::Result<()> {
        let text = match &tombstone.reason {
            Some(reason) => format!("[erased: {}]", one_line(reason)),
            None => "[erased]".to_owned(),
        };
        let content = Content::text(text);
        match tombstone.role {
            Some(Role::User) => self.query(entry, &content),
            Some(Role::System) => self.system(entry.at, &content),
            Some(Role::Assistant | Role::Tool) | None => self.answer(entry.at, &content),
        }
    }

    fn restored(&mut self, at: Timestamp, restored: &Restored) -> io::Result<()> {
        self.begin("Session Restored", at)?;
        writeln!(self.out, "**Context:** Resumed from {}", restored.from)?;
        if let Some(path) = &restored.transcript {
            writeln!(self.out, "**Previous Session:** {}", one_line(path))?;
        }
        writeln!(self.out)?;
        if let Some(text) = &restored.acknowledgement {
            self.answer(at, &Content::text(text.clone()))?;
        }
        if let Some(section) = &mut self.open {
            section.footer.add(restored.usage, restored.latency_ms);
        }
        self.close()
    }

    /// Ends the section that is open, and starts another.
    fn begin(&mut self, title: &str, at: Timestamp) -> io::Result<()> {
        self.close()?;
        self.open = Some(Section::default());
        self.heading(title, at)
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some(section) = self.open.take() {
            self.end(section.footer)?;
        }
        for (at, footer, text) in std::mem::take(&mut self.waiting) {
            self.heading("Checkpoint", at)?;
            self.paragraph(&text)?;
            self.end(footer)?;
        }
        Ok(())
    }

    fn end(&mut self, footer: Footer) -> io::Result<()> {
        if let Some(line) = footer.line() {
            self.paragraph(&line)?;
        }
        self.paragraph("---")
    }

    fn heading(&mut self, title: &str, at: Timestamp) -> io::Result<()> {
        let time = self.time(at);
        writeln!(self.out, "## {title} ({time})")
    }

    fn paragraph(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{text}\n\n")
    }

    fn time(&self, at: Timestamp) -> String {
        let zoned = at.to_zoned(self.zone.clone());
        zoned.strftime("%H:%M:%S").to_string()
    }
}

/// What a checkpoint did, in a line.
fn summarized(checkpoint: &Checkpoint) -> String {
    let messages = match checkpoint.messages {
        1 => "1 message".to_owned(),
        many => format!("{} messages", thousands(many)),
    };
    let by = one_line(&checkpoint.by);
    format!(
        "{messages} up to entry {} summarized by {by}",
        checkpoint.covers
    )
}

/// An author's name as a label can have it.
fn author(name: &str) -> String {
    one_line(&name.replace(['*', '(', ')', ':'], " "))
}
