//! Reads one section of a transcript: a heading and the lines below it.

use jiff::civil::Time;
use throughline_model::Usage;

use super::escape::{SYSTEM_PREFIX, is_note, parse_label, unescape_text};
use super::footer::Footer;

/// A user's message and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its number in the transcript.
    pub number: u64,
    /// Time of day, in the transcript's time zone.
    pub time: Time,
    /// The author, if the transcript names one.
    pub author: Option<String>,
    /// The user's text, trimmed.
    pub text: String,
    /// The answer including tool calls, trimmed.
    pub answer: String,
    /// Token usage of the answer.
    pub usage: Option<Usage>,
    /// Latency of the answer in milliseconds, as far as known.
    pub latency_ms: Option<u64>,
}

/// The kind of a heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    Query(u64),
    Restored,
    /// A checkpoint, or a message outside a query.
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

/// Parses a heading such as `## Query 1 (10:00:05)`.
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
    /// Creates a section; separates notes, rule and footer from the lines below the heading.
    pub(super) fn new(heading: Heading, time: Time, below: &[&'a str]) -> Self {
        let mut lines = Vec::with_capacity(below.len());
        let mut after_note = false;
        for line in below {
            // A note is a paragraph: drop the blank line after it too.
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

    /// Converts the section to a query.
    pub(super) fn to_query(&self, number: u64, agent: &str) -> Query {
        let label = match self.lines.first().and_then(|line| parse_label(line)) {
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
        let (author, first) = match label {
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

    /// Returns the value of a `**Name:** value` line.
    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        let found = self.lines.iter().find_map(|line| match parse_label(line) {
            Some((label, value)) if label == name => Some(value.trim()),
            _ => None,
        });
        found.filter(|value| !value.is_empty())
    }

    /// Returns the agent's text in a section that is not a query.
    pub(super) fn answer_text(&self, agent: &str) -> String {
        let fields = ["Context", "Previous Session"];
        let is_field =
            |line: &&&str| parse_label(line).is_some_and(|(name, _)| fields.contains(&name));
        let skip = self.lines.iter().take_while(is_field).count();
        let below = &self.lines[skip..];
        find_speaker_line(below, agent).map_or(String::new(), |at| labelled_text(&below[at..]))
    }
}

/// Finds the line where the next speaker begins: the agent, or else anyone.
fn find_speaker_line(lines: &[&str], agent: &str) -> Option<usize> {
    let position = |is: &dyn Fn(&str) -> bool| {
        lines
            .iter()
            .position(|line| parse_label(line).is_some_and(|(name, _)| is(name)))
    };
    position(&|name| name == agent).or_else(|| position(&|_| true))
}

/// Returns the text from a labelled line on.
fn labelled_text(lines: &[&str]) -> String {
    let first = lines.first().copied().unwrap_or_default();
    let rest = parse_label(first).map_or(first, |(_, rest)| rest);
    join_lines(rest, lines.get(1..).unwrap_or_default())
}

/// Joins and unescapes lines.
fn join_lines(first: &str, rest: &[&str]) -> String {
    // The space after a label is not part of the text.
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
