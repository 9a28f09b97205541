//! The lexer for HTML, XML and similar markup.

use super::LineState;
use super::token_kind::{TokenKind, TokenSpans};

const COMMENT: (&str, &str) = ("<!--", "-->");
/// The maximum length of an entity name.
const MAX_ENTITY_CHARS: usize = 10;

pub(super) fn lex_line(open: &mut LineState, line: &str) -> TokenSpans {
    let mut spans = TokenSpans::default();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let (length, kind) = match open {
            LineState::Comment(_) => lex_comment(open, rest),
            LineState::Tag => lex_tag(open, rest),
            _ => lex_text(open, rest, at, &mut spans),
        };
        at += length;
        spans.push(at, kind);
    }
    spans
}

fn lex_comment(open: &mut LineState, rest: &str) -> (usize, TokenKind) {
    let end = rest.find(COMMENT.1).map(|end| end + COMMENT.1.len());
    if end.is_some() {
        *open = LineState::Initial;
    }
    (end.unwrap_or(rest.len()), TokenKind::Comment)
}

fn lex_text(
    open: &mut LineState,
    rest: &str,
    at: usize,
    spans: &mut TokenSpans,
) -> (usize, TokenKind) {
    if rest.starts_with(COMMENT.0) {
        *open = LineState::Comment(1);
        return (COMMENT.0.len(), TokenKind::Comment);
    }
    if let Some(tag) = rest.strip_prefix('<') {
        let mark = tag.starts_with(['/', '!', '?']);
        let name = &tag[usize::from(mark)..];
        if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            let begin = 1 + usize::from(mark);
            let length = name.find(|c: char| c.is_whitespace() || "/>?".contains(c));
            spans.push(at + begin, TokenKind::Plain);
            *open = LineState::Tag;
            return (begin + length.unwrap_or(name.len()), TokenKind::Keyword);
        }
        return (1, TokenKind::Plain);
    }
    if let Some(entity) = rest.strip_prefix('&') {
        let name = entity.find(|c: char| !c.is_ascii_alphanumeric() && c != '#');
        return match name {
            Some(end) if (1..MAX_ENTITY_CHARS).contains(&end) && entity[end..].starts_with(';') => {
                (end + 2, TokenKind::Constant)
            }
            _ => (1, TokenKind::Plain),
        };
    }
    (
        rest.find(['<', '&']).unwrap_or(rest.len()),
        TokenKind::Plain,
    )
}

fn lex_tag(open: &mut LineState, rest: &str) -> (usize, TokenKind) {
    let Some(first) = rest.chars().next() else {
        return (0, TokenKind::Plain);
    };
    match first {
        '>' => {
            *open = LineState::Initial;
            (1, TokenKind::Plain)
        }
        '"' | '\'' => {
            let close = rest[1..].find(first).map(|close| close + 2);
            (close.unwrap_or(rest.len()), TokenKind::StringLiteral)
        }
        _ if first.is_alphabetic() || "_:@#*.-".contains(first) => {
            let end = rest.find(|c: char| c.is_whitespace() || "=>/\"'".contains(c));
            (end.unwrap_or(rest.len()).max(1), TokenKind::Key)
        }
        _ => (first.len_utf8(), TokenKind::Plain),
    }
}
