//! Lexers for texts whose lines are classified by their first characters.

use super::language::Language;
use super::token_kind::{TokenKind, TokenSpans};
use super::{LineState, code_lexer};

/// The prompts that may precede a command.
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
    let mut spans = TokenSpans::default();
    spans.push(line.len(), kind);
    spans
}

/// Lexes a command after its prompt; the output of commands stays plain.
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
    let mut spans = TokenSpans::default();
    let text = line.trim_start();
    if let LineState::UntilLine(fence) = open {
        if text.starts_with(fence.as_str()) {
            *open = LineState::Initial;
            spans.push(line.len(), TokenKind::Comment);
        }
        return spans;
    }
    let indent = line.len() - text.len();
    let after = text.trim_start_matches('#');
    if let Some(fence) = ["```", "~~~"]
        .iter()
        .find(|fence| text.starts_with(**fence))
    {
        *open = LineState::UntilLine((*fence).to_owned());
        spans.push(line.len(), TokenKind::Comment);
    } else if after.len() < text.len() && after.starts_with(' ') {
        spans.push(line.len(), TokenKind::Heading);
    } else if text.starts_with('>') {
        spans.push(line.len(), TokenKind::Comment);
    } else {
        let marked = ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark));
        spans.push(indent, TokenKind::Plain);
        spans.push(indent + usize::from(marked), TokenKind::Keyword);
        lex_code_spans(line, &mut spans);
    }
    spans
}

/// Lexes code spans in a line of prose.
fn lex_code_spans(line: &str, spans: &mut TokenSpans) {
    let mut at = 0;
    while let Some(open) = line[at..].find('`').map(|found| at + found)
        && let Some(close) = line[open + 1..].find('`').map(|found| open + 1 + found)
    {
        spans.push(open, TokenKind::Plain);
        spans.push(close + 1, TokenKind::StringLiteral);
        at = close + 1;
    }
}
