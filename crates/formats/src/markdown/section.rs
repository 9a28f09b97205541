//! Reading one section of a transcript: a heading and what stands below it.

use jiff::civil::Time;
use throughline_model::Usage;

use super::escape::{SYSTEM_PREFIX, is_note, parse_label, unescape_text};
use super::footer::Footer;

/// What the user said, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number in the transcript.
    pub number: u64,
    /// The time of day it was made, in whatever zone the transcript is in.
    pub time: Time,
    /// Who made it, where the transcript tells.
    pub author: Option<String>,
    /// What was said, without the space around it.
    pub text: String,
    /// What was answered, tool calls and all, without the space around it.
    pub answer: String,
    /// The tokens of the answer.
    pub usage: Option<Usage>,
    /// How long the answer took, in milliseconds, as far as the transcript tells.
    pub latency_ms: Option<u64>,
}

/// What a heading announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Query(u64),
    Restored,
    /// A checkpoint, or something said outside a query.
    Other,
}

/// A heading and the lines below it.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) heading: Heading,
    pub(super) time: Time,
    pub(super) lines: Vec<&'a str>,
    pub(super) footer: Footer,
}

/// What the line announces, if it is a heading of ours: `## Query 1 (10:00:05)`.
pub(super) fn parse_heading(line: &str) -> Option<(Heading, Time)> {
    let (title, time) = line
        .trim_end()
        .strip_prefix("## ")?
        .strip_suffix(')')?
        .rsplit_once(" (")?;
    let heading = match title {
        "Session Restored" => Heading::Restored,
        "Checkpoint" | "Message" => Heading::Other,
        query => Heading::Query(query.strip_prefix("Query ")?.parse().ok()?),
    };
    Some((heading, time.parse().ok()?))
}

impl<'a> Section<'a> {
    /// Takes the notes, the rule and the footer off the lines below a heading.
    pub(super) fn new(heading: Heading, time: Time, below: &[&'a str]) -> Self {
        let mut lines = Vec::with_capacity(below.len());
        let mut after_note = false;
        for line in below {
            // A note is a paragraph: the blank line after it goes too.
            let blank = line.trim().is_empty();
            if !(is_note(line) || after_note && blank) {
                lines.push(*line);
            }
            after_note = is_note(line);
        }
        trim_blank_end(&mut lines);
        if lines.last().is_some_and(|line| line.trim_end() == "---") {
            lines.pop();
            trim_blank_end(&mut lines);
        }
        let footer = lines.last().and_then(|line| Footer::parse(line));
        if footer.is_some() {
            lines.pop();
        }
        Self {
            heading,
            time,
            lines,
            footer: footer.unwrap_or_default(),
        }
    }

    /// The section as the query it is.
    pub(super) fn to_query(&self, number: u64, agent: &str) -> Query {
        let said = match self.lines.first().and_then(|line| parse_label(line)) {
            Some((who, rest)) if who == "You" || who.starts_with("You (") => Some((who, rest)),
            _ => None,
        };
        let below = self.lines.get(1..).unwrap_or_default();
        let answer = find_speaker_line(below, agent);
        let until = answer.unwrap_or(below.len());
        let until = below[..until]
            .iter()
            .position(|line| line.starts_with(SYSTEM_PREFIX))
            .unwrap_or(until);
        let (author, first) = match said {
            Some((who, rest)) => {
                let author = who.strip_prefix("You (").and_then(|w| w.strip_suffix(')'));
                (author.map(ToOwned::to_owned), rest)
            }
            None => (None, self.lines.first().copied().unwrap_or_default()),
        };
        Query {
            number,
            time: self.time,
            author,
            text: join_lines(first, &below[..until]),
            answer: answer.map_or(String::new(), |at| labelled_text(&below[at..])),
            usage: self.footer.usage,
            latency_ms: self.footer.latency_ms,
        }
    }

    /// The value of a `**Name:** value` line of the section.
    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        let found = self.lines.iter().find_map(|line| match parse_label(line) {
            Some((label, value)) if label == name => Some(value.trim()),
            _ => None,
        });
        found.filter(|value| !value.is_empty())
    }

    /// What the agent says in a section that is no query.
    pub(super) fn answer_text(&self, agent: &str) -> String {
        let fields = ["Context", "Previous Session"];
        let is_field =
            |line: &&&str| parse_label(line).is_some_and(|(name, _)| fields.contains(&name));
        let skip = self.lines.iter().take_while(is_field).count();
        let below = &self.lines[skip..];
        find_speaker_line(below, agent).map_or(String::new(), |at| labelled_text(&below[at..]))
    }
}

/// The line where somebody else begins to speak: the agent, or else anyone.
fn find_speaker_line(lines: &[&str], agent: &str) -> Option<usize> {
    let position = |is: &dyn Fn(&str) -> bool| {
        lines
            .iter()
            .position(|line| parse_label(line).is_some_and(|(name, _)| is(name)))
    };
    position(&|name| name == agent).or_else(|| position(&|_| true))
}

/// What is said from a labelled line on.
fn labelled_text(lines: &[&str]) -> String {
    let first = lines.first().copied().unwrap_or_default();
    let rest = parse_label(first).map_or(first, |(_, rest)| rest);
    join_lines(rest, lines.get(1..).unwrap_or_default())
}

/// The lines as the text they were written from.
fn join_lines(first: &str, rest: &[&str]) -> String {
    // One space stands between a label and the text, and is not of it.
    let mut text = first.strip_prefix(' ').unwrap_or(first).to_owned();
    for line in rest {
        text.push('\n');
        text.push_str(line);
    }
    unescape_text(&text).trim().to_owned()
}

fn trim_blank_end(lines: &mut Vec<&str>) {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
}
