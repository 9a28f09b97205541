//! Code, read word by word.
//!
//! Invariant: every step takes at least one character, so there are no more
//! steps than characters.

use super::Open;
use super::kind::{Kind, Pieces};
use super::language::{Habit, Language, Quote};
use super::scan;
use super::word::{self, Before, Place};

/// Reads a line from `start` on, and what it leaves open.
pub(super) fn read(
    language: &'static Language,
    open: &mut Open,
    text: &str,
    start: usize,
) -> Pieces {
    let mut line = Line {
        language,
        text,
        at: start,
        pieces: Pieces::default(),
        before: Before::Operator,
        command: true,
        assigned: false,
        then: None,
    };
    line.pieces.push(start, Kind::Comment);
    *open = line.read(std::mem::replace(open, Open::Nothing));
    line.pieces
}

/// A line being read.
struct Line<'a> {
    language: &'static Language,
    text: &'a str,
    at: usize,
    pieces: Pieces,
    before: Before,
    /// Whether a command is due.
    command: bool,
    /// Whether the value of a variable is due.
    assigned: bool,
    /// What will be open after this line.
    then: Option<Open>,
}

impl<'a> Line<'a> {
    fn read(&mut self, open: Open) -> Open {
        let mut open = match open {
            Open::Comment(depth) => self.comment(depth),
            Open::Text(quote) => self.quoted(quote, 0),
            Open::Until(end) => {
                self.take(self.text.len(), Kind::Text);
                if self.text.trim() == end {
                    Open::Nothing
                } else {
                    Open::Until(end)
                }
            }
            Open::Line => {
                self.command = false;
                Open::Nothing
            }
            Open::Nothing | Open::Tag => {
                self.beginning();
                Open::Nothing
            }
        };
        while open == Open::Nothing && self.at < self.text.len() {
            open = self.next();
        }
        if open != Open::Nothing {
            return open;
        }
        let goes_on = self.text.ends_with('\\') && !self.command;
        match self.then.take() {
            Some(then) => then,
            None if goes_on && self.language.has(Habit::Commands) => Open::Line,
            None => Open::Nothing,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes the next `length` bytes for a piece.
    fn take(&mut self, length: usize, kind: Kind) {
        self.at = (self.at + length).min(self.text.len());
        self.pieces.push(self.at, kind);
    }

    /// What only the beginning of a line can be.
    fn beginning(&mut self) {
        let text = self.rest();
        let indent = text.len() - text.trim_start().len();
        if self.language.has(Habit::Sections) && text.starts_with('[') {
            if let Some(end) = text.find(']') {
                let closing = text[end..].bytes().take_while(|&byte| byte == b']').count();
                self.take(end + closing, Kind::Type);
            }
        } else if self.language.has(Habit::Directives) && text[indent..].starts_with('#') {
            self.directive(indent + 1);
        } else if let Some((start, end)) = word::key_end(self.language, text) {
            self.take(start, Kind::Plain);
            self.take(end - start, Kind::Key);
        }
    }

    /// `#include <this>`, `#define THAT 1`: what comes `after` the hash.
    fn directive(&mut self, after: usize) {
        let text = self.rest();
        let name = text[after..].trim_start();
        let start = text.len() - name.len();
        let length = name.find(|c: char| !c.is_alphanumeric());
        self.take(start + length.unwrap_or(name.len()), Kind::Keyword);
        let rest = self.rest();
        let space = rest.len() - rest.trim_start().len();
        if rest[space..].starts_with('<')
            && let Some(end) = rest.find('>')
        {
            self.take(space, Kind::Plain);
            self.take(end + 1 - space, Kind::Text);
        }
    }

    /// Reads one piece; answers with what it leaves open.
    fn next(&mut self) -> Open {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Open::Nothing;
        };
        if first.is_whitespace() {
            self.take(first.len_utf8(), Kind::Plain);
            self.assigned = false;
        } else if let Some((begin, _)) = self.language.block.filter(|(b, _)| rest.starts_with(b)) {
            self.take(begin.len(), Kind::Comment);
            return self.comment(1);
        } else if self.is_comment(rest) {
            self.take(rest.len(), Kind::Comment);
        } else if let Some(quote) = self.quote(rest) {
            return self.quoted(quote, quote.open.len());
        } else if let Some(length) = self.pattern(rest) {
            self.take(length, Kind::Text);
            self.value();
        } else if first.is_ascii_digit() {
            self.take(scan::number(rest), Kind::Number);
            self.value();
        } else if let Some(length) = self.sigil(first, rest) {
            let kind = if first == '\\' {
                Kind::Keyword
            } else {
                Kind::Constant
            };
            self.take(length, kind);
            self.value();
        } else if self.begins_word(rest) {
            self.word(rest);
        } else {
            self.sign(first, rest);
        }
        Open::Nothing
    }

    fn is_comment(&self, rest: &str) -> bool {
        let spaced = self.text[..self.at].ends_with(char::is_whitespace) || self.at == 0;
        let mut marks = self.language.comments.iter();
        (spaced || !self.language.has(Habit::Spaced)) && marks.any(|mark| rest.starts_with(mark))
    }

    /// Reads on in a comment.
    fn comment(&mut self, mut depth: usize) -> Open {
        let Some((begin, end)) = self.language.block else {
            return Open::Nothing;
        };
        let nested = self.language.has(Habit::Nested);
        while depth > 0 {
            let rest = self.rest();
            let close = rest.find(end);
            let inner = if nested { rest.find(begin) } else { None };
            match (close, inner) {
                (Some(close), inner) if inner.is_none_or(|inner| close < inner) => {
                    self.take(close + end.len(), Kind::Comment);
                    depth -= 1;
                }
                (_, Some(inner)) => {
                    self.take(inner + begin.len(), Kind::Comment);
                    depth += 1;
                }
                _ => {
                    self.take(rest.len(), Kind::Comment);
                    return Open::Comment(depth);
                }
            }
        }
        Open::Nothing
    }

    /// The length of a regular expression or a character, if one begins here.
    fn pattern(&self, rest: &str) -> Option<usize> {
        let due = self.before != Before::Value && !self.text[..self.at].ends_with('<');
        if due && self.language.has(Habit::Patterns) {
            scan::pattern(rest)
        } else if self.language.has(Habit::Characters) {
            scan::character(rest)
        } else {
            None
        }
    }

    fn quote(&self, rest: &str) -> Option<&'static Quote> {
        let mut quotes = self.language.quotes.iter();
        quotes.find(|quote| rest.starts_with(quote.open))
    }

    /// Reads on in quoted text, after the `begin` bytes that open it.
    fn quoted(&mut self, quote: &'static Quote, begin: usize) -> Open {
        let rest = self.rest();
        let close = scan::close(&rest[begin..], quote.close, quote.escapes);
        let length = close.map_or(rest.len(), |at| begin + at + quote.close.len());
        let key = close.is_some() && word::is_key(self.language, &rest[length..], true);
        self.take(length, if key { Kind::Key } else { Kind::Text });
        self.value();
        if close.is_none() && quote.lines {
            Open::Text(quote)
        } else {
            Open::Nothing
        }
    }

    /// The length of a variable, an annotation or a symbol.
    fn sigil(&self, first: char, rest: &str) -> Option<usize> {
        if !self.language.sigils.contains(first) {
            return None;
        }
        let name = &rest[first.len_utf8()..];
        let next = name.chars().next()?;
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        if first == '$' {
            let round = next == '(' && !self.language.has(Habit::Commands);
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
        let wide = |c: char| inside(c) || (first != '$' && self.language.letters.contains(c));
        let end = name.find(|c: char| !wide(c)).unwrap_or(name.len());
        (end > 0).then_some(first.len_utf8() + end)
    }

    fn begins_word(&self, rest: &str) -> bool {
        let mut chars = rest.chars();
        let first = chars.next();
        first.is_some_and(|first| {
            let digit = chars.next().is_some_and(|next| next.is_ascii_digit());
            first.is_alphabetic()
                || first == '_'
                || (self.language.letters.contains(first) && !digit && first != '\'')
        })
    }

    fn word(&mut self, rest: &str) {
        let letters = self.language.letters;
        let inside = |c: char| c.is_alphanumeric() || c == '_' || letters.contains(c);
        let length = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (word, right) = rest.split_at(length);
        let prefix = self.quote(right).is_some();
        if prefix && self.language.prefixes.split(' ').any(|one| one == word) {
            self.take(length, Kind::Text);
            return;
        }
        let called = right.strip_prefix('!');
        if self.language.has(Habit::Macros) && called.is_some_and(|call| !call.starts_with('=')) {
            self.take(length + 1, Kind::Function);
            self.before = Before::Value;
            return;
        }
        let place = Place {
            left: &self.text[..self.at],
            right,
            before: self.before,
            command: self.command && !self.assigned,
        };
        let (kind, before) = word::kind(self.language, word, &place);
        self.take(length, kind);
        self.before = before;
        if kind == Kind::Keyword {
            self.command = !["for", "case", "in", "select", "function"].contains(&word);
        } else if !self.assigned {
            let assigns = right.starts_with('=') || right.starts_with("+=");
            self.command &= assigns;
        }
    }

    /// A sign that is none of the above.
    fn sign(&mut self, first: char, rest: &str) {
        let left = &self.text[..self.at];
        // `<<<` reads one word, and in `((` it is arithmetic.
        if self.language.has(Habit::Heredocs)
            && !left.ends_with('<')
            && let Some(end) = scan::heredoc(rest, self.language.has(Habit::Spaced))
            && !left.contains("((")
        {
            self.then = Some(Open::Until(end.to_owned()));
        }
        self.take(first.len_utf8(), Kind::Plain);
        match first {
            ')' | ']' | '}' => self.before = Before::Value,
            _ => self.before = Before::Operator,
        }
        match first {
            '=' => self.assigned = self.command,
            '|' | '&' | ';' | '(' | '{' | '`' | '!' => {
                self.command = true;
                self.assigned = false;
            }
            '\\' => {}
            _ => self.command = false,
        }
    }

    /// Notes that a value stands here.
    fn value(&mut self) {
        self.before = Before::Value;
        self.command &= self.assigned;
    }
}
