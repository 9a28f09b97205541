//! What a word of code is, from itself and what stands around it.

use super::language::{Language, LanguageFeature};
use super::token_kind::TokenKind;

/// What stands before a word or a sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PreviousToken {
    /// Nothing yet, or something that wants a value after it.
    Operator,
    Value,
    /// A keyword that names what comes after it.
    Declares(TokenKind),
}

/// Where a word stands.
#[derive(Debug)]
pub(super) struct WordContext<'a> {
    /// The line before the word.
    pub(super) left: &'a str,
    /// The line after it.
    pub(super) right: &'a str,
    pub(super) previous: PreviousToken,
    /// Whether a command is due here.
    pub(super) expects_command: bool,
}

/// What the word is, and what that makes of the word after it.
pub(super) fn classify_word(
    language: &Language,
    word: &str,
    place: &WordContext,
) -> (TokenKind, PreviousToken) {
    let member = place.left.ends_with('.') && !place.left.ends_with("..");
    let lists = |list| !member && language.list_contains(list, word);
    // At a prompt, most words are just words.
    let heard =
        !language.has_feature(LanguageFeature::Commands) || place.expects_command || word == "in";
    if heard && lists(language.keywords) {
        let before = if language.list_contains(language.function_keywords, word) {
            PreviousToken::Declares(TokenKind::Function)
        } else if language.list_contains(language.type_keywords, word) {
            PreviousToken::Declares(TokenKind::Type)
        } else {
            PreviousToken::Operator
        };
        return (TokenKind::Keyword, before);
    }
    (
        classify_name(language, word, place, &lists),
        PreviousToken::Value,
    )
}

fn classify_name(
    language: &Language,
    word: &str,
    place: &WordContext,
    lists: &dyn Fn(&'static str) -> bool,
) -> TokenKind {
    if is_key(language, place.right, false) {
        return TokenKind::Key;
    }
    if lists(language.constants) {
        return TokenKind::Constant;
    }
    if lists(language.builtin_types) {
        return TokenKind::Type;
    }
    if let PreviousToken::Declares(kind) = place.previous {
        return kind;
    }
    if language.has_feature(LanguageFeature::Commands) {
        let assigned = place.right.starts_with('=') || place.right.starts_with("+=");
        return match (place.expects_command, assigned) {
            (true, true) => TokenKind::Key,
            (true, false) => TokenKind::Function,
            (false, _) => TokenKind::Plain,
        };
    }
    let called = place.right.starts_with('(');
    if language.has_feature(LanguageFeature::CapitalizedNames)
        && word.starts_with(char::is_uppercase)
    {
        let constant = word.len() > 1 && !word.contains(char::is_lowercase);
        return match (constant, called) {
            (true, true) => TokenKind::Function,
            (true, false) => TokenKind::Constant,
            (false, _) => TokenKind::Type,
        };
    }
    if called {
        TokenKind::Function
    } else {
        TokenKind::Plain
    }
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
pub(super) fn find_line_key(language: &Language, line: &str) -> Option<(usize, usize)> {
    let separator = language
        .separator
        .filter(|_| language.has_feature(LanguageFeature::MultiWordKeys))?;
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
