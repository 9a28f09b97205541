//! Texts whose lines tell by their first characters what they are.

use super::language::Language;
use super::token_kind::{TokenKind, TokenSpans};
use super::{LineState, code_lexer};

/// What may stand before a command.
const PROMPTS: [&str; 4] = ["$ ", "% ", "> ", "❯ "];

pub(super) fn lex_diff(line: &str) -> TokenSpans {
    let kind = match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => TokenKind::Heading,
        [b'+', ..] => TokenKind::Added,
        [b'-', ..] => TokenKind::Removed,
        [b'@', b'@', ..] => TokenKind::Constant,
        [b'\\', ..] => TokenKind::Comment,
        _ if line.starts_with("diff ") || line.starts_with("index ") => TokenKind::Comment,
        _ => TokenKind::Plain,
    };
    let mut pieces = TokenSpans::default();
    pieces.push(line.len(), kind);
    pieces
}

/// A command after its prompt; what commands answered is left alone.
pub(super) fn lex_console(language: &'static Language, line: &str) -> TokenSpans {
    let indent = line.len() - line.trim_start().len();
    let prompts = PROMPTS.iter();
    let mut found = prompts.filter(|prompt| line[indent..].starts_with(**prompt));
    match found.next() {
        Some(prompt) => code_lexer::lex_line(
            language,
            &mut LineState::Initial,
            line,
            indent + prompt.len(),
        ),
        None => TokenSpans::default(),
    }
}

pub(super) fn lex_markdown(open: &mut LineState, line: &str) -> TokenSpans {
    let mut pieces = TokenSpans::default();
    let text = line.trim_start();
    if let LineState::UntilLine(fence) = open {
        if text.starts_with(fence.as_str()) {
            *open = LineState::Initial;
            pieces.push(line.len(), TokenKind::Comment);
        }
        return pieces;
    }
    let indent = line.len() - text.len();
    let after = text.trim_start_matches('#');
    if let Some(fence) = ["```", "~~~"]
        .iter()
        .find(|fence| text.starts_with(**fence))
    {
        *open = LineState::UntilLine((*fence).to_owned());
        pieces.push(line.len(), TokenKind::Comment);
    } else if after.len() < text.len() && after.starts_with(' ') {
        pieces.push(line.len(), TokenKind::Heading);
    } else if text.starts_with('>') {
        pieces.push(line.len(), TokenKind::Comment);
    } else {
        let marked = ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark));
        pieces.push(indent, TokenKind::Plain);
        pieces.push(indent + usize::from(marked), TokenKind::Keyword);
        lex_code_spans(line, &mut pieces);
    }
    pieces
}

/// Spans of code in a line of prose.
fn lex_code_spans(line: &str, pieces: &mut TokenSpans) {
    let mut at = 0;
    while let Some(open) = line[at..].find('`').map(|found| at + found)
        && let Some(close) = line[open + 1..].find('`').map(|found| open + 1 + found)
    {
        pieces.push(open, TokenKind::Plain);
        pieces.push(close + 1, TokenKind::StringLiteral);
        at = close + 1;
    }
}
