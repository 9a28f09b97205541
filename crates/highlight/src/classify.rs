//! Classifies a word of code by itself and its context.

use super::language::{Language, LanguageFeature};
use super::token_kind::TokenKind;

/// The token before a word or sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PreviousToken {
    /// Nothing yet, or something that a value follows.
    Operator,
    Value,
    /// A keyword that is followed by a name of this kind.
    Declares(TokenKind),
}

/// The context of a word.
#[derive(Debug)]
pub(super) struct WordContext<'a> {
    /// The line before the word.
    pub(super) left: &'a str,
    /// The line after it.
    pub(super) right: &'a str,
    pub(super) previous: PreviousToken,
    /// Whether a command is expected here.
    pub(super) expects_command: bool,
}

/// Returns the kind of a word, and what that implies for the next word.
pub(super) fn classify_word(
    language: &Language,
    word: &str,
    context: &WordContext,
) -> (TokenKind, PreviousToken) {
    let member = context.left.ends_with('.') && !context.left.ends_with("..");
    let lists = |list| !member && language.list_contains(list, word);
    // In shell commands, most words are plain arguments.
    let is_significant =
        !language.has_feature(LanguageFeature::Commands) || context.expects_command || word == "in";
    if is_significant && lists(language.keywords) {
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
        classify_name(language, word, context, &lists),
        PreviousToken::Value,
    )
}

fn classify_name(
    language: &Language,
    word: &str,
    context: &WordContext,
    lists: &dyn Fn(&'static str) -> bool,
) -> TokenKind {
    if is_key(language, context.right, false) {
        return TokenKind::Key;
    }
    if lists(language.constants) {
        return TokenKind::Constant;
    }
    if lists(language.builtin_types) {
        return TokenKind::Type;
    }
    if let PreviousToken::Declares(kind) = context.previous {
        return kind;
    }
    if language.has_feature(LanguageFeature::Commands) {
        let assigned = context.right.starts_with('=') || context.right.starts_with("+=");
        return match (context.expects_command, assigned) {
            (true, true) => TokenKind::Key,
            (true, false) => TokenKind::Function,
            (false, _) => TokenKind::Plain,
        };
    }
    let called = context.right.starts_with('(');
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

/// Returns whether the text before `right` is a key.
pub(super) fn is_key(language: &Language, right: &str, quoted: bool) -> bool {
    let Some(separator) = language.separator else {
        return false;
    };
    let Some(after) = right.trim_start().strip_prefix(separator) else {
        return false;
    };
    match separator {
        '=' => !after.starts_with(['=', '>']),
        // Much else can precede a bare colon.
        _ => quoted || after.is_empty() || after.starts_with(' '),
    }
}

/// Returns the end of a key at the beginning of a line, in a language whose keys may have
/// several words.
pub(super) fn find_line_key(language: &Language, line: &str) -> Option<(usize, usize)> {
    let separator = language
        .separator
        .filter(|_| language.has_feature(LanguageFeature::MultiWordKeys))?;
    // In a makefile, a tab precedes commands.
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
