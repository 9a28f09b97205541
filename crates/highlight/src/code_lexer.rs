//! The lexer for program code.
//!
//! Invariant: every step consumes at least one character, so there are no more steps than
//! characters.

use super::LineState;
use super::classify::{self, PreviousToken, WordContext};
use super::language::{Language, LanguageFeature, Quote};
use super::literals;
use super::token_kind::{TokenKind, TokenSpans};

/// Lexes a line from `start` on, updating the state it leaves open.
pub(super) fn lex_line(
    language: &'static Language,
    open: &mut LineState,
    text: &str,
    start: usize,
) -> TokenSpans {
    let mut line = LineLexer {
        language,
        text,
        at: start,
        spans: TokenSpans::default(),
        previous: PreviousToken::Operator,
        expects_command: true,
        expects_value: false,
        next_state: None,
    };
    line.spans.push(start, TokenKind::Comment);
    *open = line.lex(std::mem::replace(open, LineState::Initial));
    line.spans
}

/// A line being lexed.
struct LineLexer<'a> {
    language: &'static Language,
    text: &'a str,
    at: usize,
    spans: TokenSpans,
    previous: PreviousToken,
    /// Whether a command is expected.
    expects_command: bool,
    /// Whether the value of a variable is expected.
    expects_value: bool,
    /// The state after this line.
    next_state: Option<LineState>,
}

impl<'a> LineLexer<'a> {
    fn lex(&mut self, open: LineState) -> LineState {
        let mut open = match open {
            LineState::Comment(depth) => self.lex_comment(depth),
            LineState::Quoted(quote) => self.lex_quoted(quote, 0),
            LineState::UntilLine(end) => {
                self.take(self.text.len(), TokenKind::StringLiteral);
                if self.text.trim() == end {
                    LineState::Initial
                } else {
                    LineState::UntilLine(end)
                }
            }
            LineState::CommandContinuation => {
                self.expects_command = false;
                LineState::Initial
            }
            LineState::Initial | LineState::Tag => {
                self.lex_line_start();
                LineState::Initial
            }
        };
        while open == LineState::Initial && self.at < self.text.len() {
            open = self.lex_token();
        }
        if open != LineState::Initial {
            return open;
        }
        let goes_on = self.text.ends_with('\\') && !self.expects_command;
        match self.next_state.take() {
            Some(then) => then,
            None if goes_on && self.language.has_feature(LanguageFeature::Commands) => {
                LineState::CommandContinuation
            }
            None => LineState::Initial,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Consumes the next `length` bytes as a token.
    fn take(&mut self, length: usize, kind: TokenKind) {
        self.at = (self.at + length).min(self.text.len());
        self.spans.push(self.at, kind);
    }

    /// Lexes what can only be at the beginning of a line.
    fn lex_line_start(&mut self) {
        let text = self.rest();
        let indent = text.len() - text.trim_start().len();
        if self.language.has_feature(LanguageFeature::Sections) && text.starts_with('[') {
            if let Some(end) = text.find(']') {
                let closing = text[end..].bytes().take_while(|&byte| byte == b']').count();
                self.take(end + closing, TokenKind::Type);
            }
        } else if self.language.has_feature(LanguageFeature::Directives)
            && text[indent..].starts_with('#')
        {
            self.lex_directive(indent + 1);
        } else if let Some((start, end)) = classify::find_line_key(self.language, text) {
            self.take(start, TokenKind::Plain);
            self.take(end - start, TokenKind::Key);
        }
    }

    /// Lexes a directive such as `#include <this>` or `#define THAT 1`, from `after` the hash.
    fn lex_directive(&mut self, after: usize) {
        let text = self.rest();
        let name = text[after..].trim_start();
        let start = text.len() - name.len();
        let length = name.find(|c: char| !c.is_alphanumeric());
        self.take(start + length.unwrap_or(name.len()), TokenKind::Keyword);
        let rest = self.rest();
        let space = rest.len() - rest.trim_start().len();
        if rest[space..].starts_with('<')
            && let Some(end) = rest.find('>')
        {
            self.take(space, TokenKind::Plain);
            self.take(end + 1 - space, TokenKind::StringLiteral);
        }
    }

    /// Lexes one token; returns the state it leaves open.
    fn lex_token(&mut self) -> LineState {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return LineState::Initial;
        };
        if first.is_whitespace() {
            self.take(first.len_utf8(), TokenKind::Plain);
            self.expects_value = false;
        } else if let Some((begin, _)) = self
            .language
            .block_comment
            .filter(|(b, _)| rest.starts_with(b))
        {
            self.take(begin.len(), TokenKind::Comment);
            return self.lex_comment(1);
        } else if self.is_comment(rest) {
            self.take(rest.len(), TokenKind::Comment);
        } else if let Some(quote) = self.match_quote(rest) {
            return self.lex_quoted(quote, quote.open.len());
        } else if let Some(length) = self.match_literal(rest) {
            self.take(length, TokenKind::StringLiteral);
            self.note_value();
        } else if first.is_ascii_digit() {
            self.take(literals::number_len(rest), TokenKind::Number);
            self.note_value();
        } else if let Some(length) = self.match_sigil(first, rest) {
            let kind = if first == '\\' {
                TokenKind::Keyword
            } else {
                TokenKind::Constant
            };
            self.take(length, kind);
            self.note_value();
        } else if self.is_word_start(rest) {
            self.lex_word(rest);
        } else {
            self.lex_punctuation(first, rest);
        }
        LineState::Initial
    }

    fn is_comment(&self, rest: &str) -> bool {
        let spaced = self.text[..self.at].ends_with(char::is_whitespace) || self.at == 0;
        let mut marks = self.language.line_comments.iter();
        (spaced || !self.language.has_feature(LanguageFeature::SpacedComments))
            && marks.any(|mark| rest.starts_with(mark))
    }

    /// Continues a comment.
    fn lex_comment(&mut self, mut depth: usize) -> LineState {
        let Some((begin, end)) = self.language.block_comment else {
            return LineState::Initial;
        };
        let nested = self.language.has_feature(LanguageFeature::NestedComments);
        while depth > 0 {
            let rest = self.rest();
            let close = rest.find(end);
            let inner = if nested { rest.find(begin) } else { None };
            match (close, inner) {
                (Some(close), inner) if inner.is_none_or(|inner| close < inner) => {
                    self.take(close + end.len(), TokenKind::Comment);
                    depth -= 1;
                }
                (_, Some(inner)) => {
                    self.take(inner + begin.len(), TokenKind::Comment);
                    depth += 1;
                }
                _ => {
                    self.take(rest.len(), TokenKind::Comment);
                    return LineState::Comment(depth);
                }
            }
        }
        LineState::Initial
    }

    /// Returns the length of a regular expression or character literal that begins here.
    fn match_literal(&self, rest: &str) -> Option<usize> {
        let due = self.previous != PreviousToken::Value && !self.text[..self.at].ends_with('<');
        if due && self.language.has_feature(LanguageFeature::RegexLiterals) {
            literals::regex_len(rest)
        } else if self.language.has_feature(LanguageFeature::CharLiterals) {
            literals::char_literal_len(rest)
        } else {
            None
        }
    }

    fn match_quote(&self, rest: &str) -> Option<&'static Quote> {
        let mut quotes = self.language.quotes.iter();
        quotes.find(|quote| rest.starts_with(quote.open))
    }

    /// Lexes quoted text, after the `begin` bytes that open it.
    fn lex_quoted(&mut self, quote: &'static Quote, begin: usize) -> LineState {
        let rest = self.rest();
        let close = literals::find_closing_quote(&rest[begin..], quote.close, quote.escapes);
        let length = close.map_or(rest.len(), |at| begin + at + quote.close.len());
        let key = close.is_some() && classify::is_key(self.language, &rest[length..], true);
        self.take(
            length,
            if key {
                TokenKind::Key
            } else {
                TokenKind::StringLiteral
            },
        );
        self.note_value();
        if close.is_none() && quote.multiline {
            LineState::Quoted(quote)
        } else {
            LineState::Initial
        }
    }

    /// Returns the length of a variable, annotation or symbol.
    fn match_sigil(&self, first: char, rest: &str) -> Option<usize> {
        if !self.language.sigils.contains(first) {
            return None;
        }
        let name = &rest[first.len_utf8()..];
        let next = name.chars().next()?;
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        if first == '$' {
            let round = next == '(' && !self.language.has_feature(LanguageFeature::Commands);
            if next == '{' || round {
                return Some(name.find(['}', ')']).map_or(1, |end| end + 2));
            }
            if "?@#!*<^$".contains(next) {
                return Some(2);
            }
        } else if first != '\\' {
            let left = self.text[..self.at].chars().next_back();
            if left.is_some_and(|left| inside(left) || left == first || left == ')') {
                return None;
            }
        }
        let wide = |c: char| inside(c) || (first != '$' && self.language.word_chars.contains(c));
        let end = name.find(|c: char| !wide(c)).unwrap_or(name.len());
        (end > 0).then_some(first.len_utf8() + end)
    }

    fn is_word_start(&self, rest: &str) -> bool {
        let mut chars = rest.chars();
        let first = chars.next();
        first.is_some_and(|first| {
            let digit = chars.next().is_some_and(|next| next.is_ascii_digit());
            first.is_alphabetic()
                || first == '_'
                || (self.language.word_chars.contains(first) && !digit && first != '\'')
        })
    }

    fn lex_word(&mut self, rest: &str) {
        let letters = self.language.word_chars;
        let inside = |c: char| c.is_alphanumeric() || c == '_' || letters.contains(c);
        let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (word, right) = rest.split_at(length);
        let prefix = self.match_quote(right).is_some();
        if prefix
            && self
                .language
                .quote_prefixes
                .split(' ')
                .any(|one| one == word)
        {
            self.take(length, TokenKind::StringLiteral);
            return;
        }
        let called = right.strip_prefix('!');
        if self.language.has_feature(LanguageFeature::Macros)
            && called.is_some_and(|call| !call.starts_with('='))
        {
            self.take(length + 1, TokenKind::Function);
            self.previous = PreviousToken::Value;
            return;
        }
        let context = WordContext {
            left: &self.text[..self.at],
            right,
            previous: self.previous,
            expects_command: self.expects_command && !self.expects_value,
        };
        let (kind, before) = classify::classify_word(self.language, word, &context);
        self.take(length, kind);
        self.previous = before;
        if kind == TokenKind::Keyword {
            self.expects_command = !["for", "case", "in", "select", "function"].contains(&word);
        } else if !self.expects_value {
            let assigns = right.starts_with('=') || right.starts_with("+=");
            self.expects_command &= assigns;
        }
    }

    /// Lexes any other sign.
    fn lex_punctuation(&mut self, first: char, rest: &str) {
        let left = &self.text[..self.at];
        // `<<<` is a here-string, and in `((` it is arithmetic.
        if self.language.has_feature(LanguageFeature::Heredocs)
            && !left.ends_with('<')
            && let Some(end) = literals::heredoc_terminator(
                rest,
                self.language.has_feature(LanguageFeature::SpacedComments),
            )
            && !left.contains("((")
        {
            self.next_state = Some(LineState::UntilLine(end.to_owned()));
        }
        self.take(first.len_utf8(), TokenKind::Plain);
        match first {
            ')' | ']' | '}' => self.previous = PreviousToken::Value,
            _ => self.previous = PreviousToken::Operator,
        }
        match first {
            '=' => self.expects_value = self.expects_command,
            '|' | '&' | ';' | '(' | '{' | '`' | '!' => {
                self.expects_command = true;
                self.expects_value = false;
            }
            '\\' => {}
            _ => self.expects_command = false,
        }
    }

    /// Records that a value precedes the next token.
    fn note_value(&mut self) {
        self.previous = PreviousToken::Value;
        self.expects_command &= self.expects_value;
    }
}
