//! aider: a Markdown history in the project's folder, one after another session.
//!
//! `#### ` is what the person said, `> ` what the program did, everything else the answer.
//! Only the beginning of a session has a time, in the zone of the machine.

use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use throughline_model::{Message, Role, Timestamp, Usage};

use super::line_format::LineFormat;
use super::telling::Telling;

const STARTED: &str = "# aider chat started at ";

/// What is known between two lines.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Aider {
    folder: String,
    session: String,
    at: Option<Timestamp>,
    begun: bool,
    model: Option<String>,
    /// The answer, which waits for what it cost, and the piece that is being read.
    answer: Option<Piece>,
    piece: Option<Piece>,
    /// Whether the lines are inside a fence, where nothing is structure.
    fenced: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    place: u64,
    who: Who,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Who {
    Person,
    Program,
    Model,
}

impl LineFormat for Aider {
    const JSON: bool = false;

    fn before(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(path);
        Self {
            folder: folder.to_string_lossy().into_owned(),
            ..Self::default()
        }
    }

    fn line(&mut self, telling: &mut Telling<'_>, place: u64, line: &str) -> Result<(), String> {
        if let Some(time) = line.strip_prefix(STARTED) {
            self.end(telling);
            self.begin(telling, time.trim());
            return Ok(());
        }
        if !self.begun {
            self.begin(telling, "");
        }
        let (who, said) = if let Some(said) = line.strip_prefix("####").filter(|_| !self.fenced) {
            (Who::Person, said.strip_prefix(' ').unwrap_or(said))
        } else if let Some(said) = line.strip_prefix("> ").filter(|_| !self.fenced) {
            (Who::Program, said)
        } else {
            (Who::Model, line)
        };
        if who == Who::Model && line.trim_start().starts_with("```") {
            self.fenced = !self.fenced;
        }
        self.take(telling, place, who, said.trim_end());
        Ok(())
    }

    fn again(&self, telling: &mut Telling<'_>) {
        if self.begun {
            telling.session(telling.found(&self.session));
        }
    }

    fn end(&mut self, telling: &mut Telling<'_>) {
        self.fenced = false;
        self.close(telling);
        self.let_go(telling, None);
    }
}

impl Aider {
    fn begin(&mut self, telling: &mut Telling<'_>, time: &str) {
        let civil: Option<DateTime> = time.replace(' ', "T").parse().ok();
        self.at = civil
            .and_then(|civil| civil.to_zoned(TimeZone::system()).ok())
            .map(|zoned| zoned.timestamp());
        self.session = format!("{} {time}", self.folder);
        let mut found = telling.found(&self.session);
        found.at = self.at;
        found.workspace = Some(self.folder.clone());
        telling.session(found);
        self.begun = true;
        self.model = None;
    }

    fn take(&mut self, telling: &mut Telling<'_>, place: u64, who: Who, said: &str) {
        if let Some(piece) = &mut self.piece
            && piece.who == who
        {
            piece.text.push('\n');
            piece.text.push_str(said);
            return;
        }
        self.close(telling);
        self.piece = Some(Piece {
            place,
            who,
            text: said.to_owned(),
        });
    }

    /// Ends the piece that is being read.
    fn close(&mut self, telling: &mut Telling<'_>) {
        let Some(piece) = self.piece.take() else {
            return;
        };
        let text = piece.text.trim().to_owned();
        let piece = Piece { text, ..piece };
        if piece.text.is_empty() {
            return;
        }
        match piece.who {
            Who::Model => {
                self.let_go(telling, None);
                self.answer = Some(piece);
            }
            Who::Program => {
                let lines = piece.text.lines();
                let model = lines.clone().find_map(|line| {
                    let rest = line.strip_prefix("Main model: ");
                    let rest = rest.or_else(|| line.strip_prefix("Model: "))?;
                    rest.split_whitespace().next().map(ToOwned::to_owned)
                });
                self.model = model.or_else(|| self.model.take());
                let usage = lines.clone().find_map(tokens);
                self.let_go(telling, usage);
                self.say(telling, piece, Role::System, None);
            }
            Who::Person => {
                self.let_go(telling, None);
                self.say(telling, piece, Role::User, None);
            }
        }
    }

    fn let_go(&mut self, telling: &mut Telling<'_>, usage: Option<Usage>) {
        if let Some(answer) = self.answer.take() {
            self.say(telling, answer, Role::Assistant, usage);
        }
    }

    fn say(&self, telling: &mut Telling<'_>, piece: Piece, role: Role, usage: Option<Usage>) {
        let mut message = Message::text(role, piece.text);
        if role == Role::Assistant {
            message.model.clone_from(&self.model);
            message.usage = usage;
        }
        telling.message(piece.place, None, self.at, message);
    }
}

/// `Tokens: 2.1k sent, 1.5k cache hit, 118 received.`
fn tokens(line: &str) -> Option<Usage> {
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
