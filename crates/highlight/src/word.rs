//! What a word of code is, from itself and what stands around it.

use super::kind::Kind;
use super::language::{Habit, Language};

/// What stands before a word or a sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Before {
    /// Nothing yet, or something that wants a value after it.
    Operator,
    Value,
    /// A keyword that names what comes after it.
    Names(Kind),
}

/// Where a word stands.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// The line before the word.
    pub(super) left: &'a str,
    /// The line after it.
    pub(super) right: &'a str,
    pub(super) before: Before,
    /// Whether a command is due here.
    pub(super) command: bool,
}

/// What the word is, and what that makes of the word after it.
pub(super) fn kind(language: &Language, word: &str, place: &Place) -> (Kind, Before) {
    let member = place.left.ends_with('.') && !place.left.ends_with("..");
    let lists = |list| !member && language.lists(list, word);
    // At a prompt, most words are just words.
    let heard = !language.has(Habit::Commands) || place.command || word == "in";
    if heard && lists(language.keywords) {
        let before = if language.lists(language.functions, word) {
            Before::Names(Kind::Function)
        } else if language.lists(language.types, word) {
            Before::Names(Kind::Type)
        } else {
            Before::Operator
        };
        return (Kind::Keyword, before);
    }
    (name(language, word, place, &lists), Before::Value)
}

fn name(
    language: &Language,
    word: &str,
    place: &Place,
    lists: &dyn Fn(&'static str) -> bool,
) -> Kind {
    if is_key(language, place.right, false) {
        return Kind::Key;
    }
    if lists(language.constants) {
        return Kind::Constant;
    }
    if lists(language.known) {
        return Kind::Type;
    }
    if let Before::Names(kind) = place.before {
        return kind;
    }
    if language.has(Habit::Commands) {
        let assigned = place.right.starts_with('=') || place.right.starts_with("+=");
        return match (place.command, assigned) {
            (true, true) => Kind::Key,
            (true, false) => Kind::Function,
            (false, _) => Kind::Plain,
        };
    }
    let called = place.right.starts_with('(');
    if language.has(Habit::Capitals) && word.starts_with(char::is_uppercase) {
        let constant = word.len() > 1 && !word.contains(char::is_lowercase);
        return match (constant, called) {
            (true, true) => Kind::Function,
            (true, false) => Kind::Constant,
            (false, _) => Kind::Type,
        };
    }
    if called { Kind::Function } else { Kind::Plain }
}

/// Whether what stands before this is a key.
pub(super) fn is_key(language: &Language, right: &str, quoted: bool) -> bool {
    let Some(separator) = language.separator else {
        return false;
    };
    let Some(after) = right.trim_start().strip_prefix(separator) else {
        return false;
    };
    match separator {
        '=' => !after.starts_with(['=', '>']),
        // In front of a bare colon may be much else.
        _ => quoted || after.is_empty() || after.starts_with(' '),
    }
}

/// The end of a key that a line begins with, in a language that lets it have
/// many words.
pub(super) fn key_end(language: &Language, line: &str) -> Option<(usize, usize)> {
    let separator = language.separator.filter(|_| language.has(Habit::Keys))?;
    // In a makefile, a tab is in front of commands.
    if line.starts_with('\t') {
        return None;
    }
    let text = line.trim_start_matches([' ', '-']);
    let start = line.len() - text.len();
    if start > 0 && line[..start].ends_with('-') {
        return None;
    }
    let mut ends = text.match_indices(separator);
    let (end, _) = ends.find(|&(at, _)| {
        let after = &text[at + separator.len_utf8()..];
        after.is_empty() || after.starts_with(' ')
    })?;
    let key = &text[..end];
    let plain = !key.is_empty() && !key.contains(['"', '\'', '{', '[', '(', '#', ',']);
    plain.then_some((start, start + key.trim_end().len()))
}
