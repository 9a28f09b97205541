//! Texts whose lines tell by their first characters what they are.

use super::kind::{Kind, Pieces};
use super::language::Language;
use super::{Open, code};

/// What may stand before a command.
const PROMPTS: [&str; 4] = ["$ ", "% ", "> ", "❯ "];

pub(super) fn diff(line: &str) -> Pieces {
    let kind = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Kind::Heading,
        [b'+', ..] => Kind::Added,
        [b'-', ..] => Kind::Removed,
        [b'@', b'@', ..] => Kind::Constant,
        [b'\\', ..] => Kind::Comment,
        _ if line.starts_with("diff ") || line.starts_with("index ") => Kind::Comment,
        _ => Kind::Plain,
    };
    let mut pieces = Pieces::default();
    pieces.push(line.len(), kind);
    pieces
}

/// A command after its prompt; what commands answered is left alone.
pub(super) fn console(language: &'static Language, line: &str) -> Pieces {
    let indent = line.len() - line.trim_start().len();
    let prompts = PROMPTS.iter();
    let mut found = prompts.filter(|prompt| line[indent..].starts_with(**prompt));
    match found.next() {
        Some(prompt) => code::read(language, &mut Open::Nothing, line, indent + prompt.len()),
        None => Pieces::default(),
    }
}

pub(super) fn markdown(open: &mut Open, line: &str) -> Pieces {
    let mut pieces = Pieces::default();
    let text = line.trim_start();
    if let Open::Until(fence) = open {
        if text.starts_with(fence.as_str()) {
            *open = Open::Nothing;
            pieces.push(line.len(), Kind::Comment);
        }
        return pieces;
    }
    let indent = line.len() - text.len();
    let after = text.trim_start_matches('#');
    if let Some(fence) = ["```", "~~~"]
        .iter()
        .find(|fence| text.starts_with(**fence))
    {
        *open = Open::Until((*fence).to_owned());
        pieces.push(line.len(), Kind::Comment);
    } else if after.len() < text.len() && after.starts_with(' ') {
        pieces.push(line.len(), Kind::Heading);
    } else if text.starts_with('>') {
        pieces.push(line.len(), Kind::Comment);
    } else {
        let marked = ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark));
        pieces.push(indent, Kind::Plain);
        pieces.push(indent + usize::from(marked), Kind::Keyword);
        spans(line, &mut pieces);
    }
    pieces
}

/// Spans of code in a line of prose.
fn spans(line: &str, pieces: &mut Pieces) {
    let mut at = 0;
    while let Some(open) = line[at..].find('`').map(|found| at + found)
        && let Some(close) = line[open + 1..].find('`').map(|found| open + 1 + found)
    {
        pieces.push(open, Kind::Plain);
        pieces.push(close + 1, Kind::Text);
        at = close + 1;
    }
}
