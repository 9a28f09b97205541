//! Elements and their attributes: HTML, XML and what is built on them.

use super::Open;
use super::kind::{Kind, Pieces};

const COMMENT: (&str, &str) = ("<!--", "-->");
/// An entity with a longer name is none.
const LONGEST_ENTITY: usize = 10;

pub(super) fn read(open: &mut Open, line: &str) -> Pieces {
    let mut pieces = Pieces::default();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let (length, kind) = match open {
            Open::Comment(_) => comment(open, rest),
            Open::Tag => in_tag(open, rest),
            _ => in_text(open, rest, at, &mut pieces),
        };
        at += length;
        pieces.push(at, kind);
    }
    pieces
}

fn comment(open: &mut Open, rest: &str) -> (usize, Kind) {
    let end = rest.find(COMMENT.1).map(|end| end + COMMENT.1.len());
    if end.is_some() {
        *open = Open::Nothing;
    }
    (end.unwrap_or(rest.len()), Kind::Comment)
}

fn in_text(open: &mut Open, rest: &str, at: usize, pieces: &mut Pieces) -> (usize, Kind) {
    if rest.starts_with(COMMENT.0) {
        *open = Open::Comment(1);
        return (COMMENT.0.len(), Kind::Comment);
    }
    if let Some(tag) = rest.strip_prefix('<') {
        let mark = tag.starts_with(['/', '!', '?']);
        let name = &tag[usize::from(mark)..];
        if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            let begin = 1 + usize::from(mark);
            let length = name.find(|c: char| c.is_whitespace() || "/>?".contains(c));
            pieces.push(at + begin, Kind::Plain);
            *open = Open::Tag;
            return (begin + length.unwrap_or(name.len()), Kind::Keyword);
        }
        return (1, Kind::Plain);
    }
    if let Some(entity) = rest.strip_prefix('&') {
        let name = entity.find(|c: char| !c.is_ascii_alphanumeric() && c != '#');
        return match name {
            Some(end) if (1..LONGEST_ENTITY).contains(&end) && entity[end..].starts_with(';') => {
                (end + 2, Kind::Constant)
            }
            _ => (1, Kind::Plain),
        };
    }
    (rest.find(['<', '&']).unwrap_or(rest.len()), Kind::Plain)
}

fn in_tag(open: &mut Open, rest: &str) -> (usize, Kind) {
    let Some(first) = rest.chars().next() else {
        return (0, Kind::Plain);
    };
    match first {
        '>' => {
            *open = Open::Nothing;
            (1, Kind::Plain)
        }
        '"' | '\'' => {
            let close = rest[1..].find(first).map(|close| close + 2);
            (close.unwrap_or(rest.len()), Kind::Text)
        }
        _ if first.is_alphabetic() || "_:@#*.-".contains(first) => {
            let end = rest.find(|c: char| c.is_whitespace() || "=>/\"'".contains(c));
            (end.unwrap_or(rest.len()).max(1), Kind::Key)
        }
        _ => (first.len_utf8(), Kind::Plain),
    }
}
