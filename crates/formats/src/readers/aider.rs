//! Reads aider's Markdown history, which contains the sessions of a project in sequence.
//!
//! `#### ` starts a user's line, `> ` a line of program output; everything else is the
//! answer. Only the start of a session has a time, in the machine's time zone.

use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use throughline_model::{Message, Role, Timestamp, Usage};

use super::emitter::Emitter;
use super::line_format::LineFormat;

const SESSION_PREFIX: &str = "# aider chat started at ";

/// The state between two lines.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Aider {
    folder: String,
    session: String,
    at: Option<Timestamp>,
    begun: bool,
    model: Option<String>,
    /// The answer, held back until its cost is known, and the segment being read.
    answer: Option<Segment>,
    piece: Option<Segment>,
    /// Whether the lines are inside a code fence, where nothing is structure.
    fenced: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Segment {
    place: u64,
    who: Speaker,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Speaker {
    Person,
    Program,
    Model,
}

impl LineFormat for Aider {
    const IS_JSON: bool = false;

    fn new(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(path);
        Self {
            folder: folder.to_string_lossy().into_owned(),
            ..Self::default()
        }
    }

    fn read_line(
        &mut self,
        emitter: &mut Emitter<'_>,
        place: u64,
        line: &str,
    ) -> Result<(), String> {
        if let Some(time) = line.strip_prefix(SESSION_PREFIX) {
            self.finish(emitter);
            self.begin_session(emitter, time.trim());
            return Ok(());
        }
        if !self.begun {
            self.begin_session(emitter, "");
        }
        let (who, content) =
            if let Some(content) = line.strip_prefix("####").filter(|_| !self.fenced) {
                (
                    Speaker::Person,
                    content.strip_prefix(' ').unwrap_or(content),
                )
            } else if let Some(content) = line.strip_prefix("> ").filter(|_| !self.fenced) {
                (Speaker::Program, content)
            } else {
                (Speaker::Model, line)
            };
        if who == Speaker::Model && line.trim_start().starts_with("```") {
            self.fenced = !self.fenced;
        }
        self.push_line(emitter, place, who, content.trim_end());
        Ok(())
    }

    fn resume(&self, emitter: &mut Emitter<'_>) {
        if self.begun {
            emitter.emit_session(emitter.new_session(&self.session));
        }
    }

    fn finish(&mut self, emitter: &mut Emitter<'_>) {
        self.fenced = false;
        self.finish_segment(emitter);
        self.emit_answer(emitter, None);
    }
}

impl Aider {
    fn begin_session(&mut self, emitter: &mut Emitter<'_>, time: &str) {
        let civil: Option<DateTime> = time.replace(' ', "T").parse().ok();
        self.at = civil
            .and_then(|civil| civil.to_zoned(TimeZone::system()).ok())
            .map(|zoned| zoned.timestamp());
        self.session = format!("{} {time}", self.folder);
        let mut found = emitter.new_session(&self.session);
        found.at = self.at;
        found.workspace = Some(self.folder.clone());
        emitter.emit_session(found);
        self.begun = true;
        self.model = None;
    }

    fn push_line(&mut self, emitter: &mut Emitter<'_>, place: u64, who: Speaker, content: &str) {
        if let Some(piece) = &mut self.piece
            && piece.who == who
        {
            piece.text.push('\n');
            piece.text.push_str(content);
            return;
        }
        self.finish_segment(emitter);
        self.piece = Some(Segment {
            place,
            who,
            text: content.to_owned(),
        });
    }

    /// Ends the current segment.
    fn finish_segment(&mut self, emitter: &mut Emitter<'_>) {
        let Some(piece) = self.piece.take() else {
            return;
        };
        let text = piece.text.trim().to_owned();
        let piece = Segment { text, ..piece };
        if piece.text.is_empty() {
            return;
        }
        match piece.who {
            Speaker::Model => {
                self.emit_answer(emitter, None);
                self.answer = Some(piece);
            }
            Speaker::Program => {
                let lines = piece.text.lines();
                let model = lines.clone().find_map(|line| {
                    let rest = line.strip_prefix("Main model: ");
                    let rest = rest.or_else(|| line.strip_prefix("Model: "))?;
                    rest.split_whitespace().next().map(ToOwned::to_owned)
                });
                self.model = model.or_else(|| self.model.take());
                let usage = lines.clone().find_map(parse_usage);
                self.emit_answer(emitter, usage);
                self.emit_message(emitter, piece, Role::System, None);
            }
            Speaker::Person => {
                self.emit_answer(emitter, None);
                self.emit_message(emitter, piece, Role::User, None);
            }
        }
    }

    fn emit_answer(&mut self, emitter: &mut Emitter<'_>, usage: Option<Usage>) {
        if let Some(answer) = self.answer.take() {
            self.emit_message(emitter, answer, Role::Assistant, usage);
        }
    }

    fn emit_message(
        &self,
        emitter: &mut Emitter<'_>,
        piece: Segment,
        role: Role,
        usage: Option<Usage>,
    ) {
        let mut message = Message::text(role, piece.text);
        if role == Role::Assistant {
            message.model.clone_from(&self.model);
            message.usage = usage;
        }
        emitter.emit_message(piece.place, None, self.at, message);
    }
}

/// Parses `Tokens: 2.1k sent, 1.5k cache hit, 118 received.`
fn parse_usage(line: &str) -> Option<Usage> {
    let rest = line.strip_prefix("Tokens: ")?;
    let mut usage = Usage::default();
    for part in rest.split(". ").next()?.split(", ") {
        let (count, what) = part.split_once(' ')?;
        let (digits, times) = match count.strip_suffix('k') {
            Some(thousands) => (thousands, 1000.0),
            None => (count, 1.0),
        };
        let count: f64 = digits.replace(',', "").parse().ok()?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts of tokens"
        )]
        let count = (count * times).round().max(0.0) as u64;
        match what.trim_end_matches('.') {
            "sent" => usage.input = count,
            "received" => usage.output = count,
            "cache hit" => usage.cache_read = count,
            "cache write" => usage.cache_write = count,
            _ => {}
        }
    }
    Some(usage)
}
