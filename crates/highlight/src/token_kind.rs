//! Kinds of tokens, and the spans of a line.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Plain text.
    Plain,
    /// A keyword of the language.
    Keyword,
    /// A string literal.
    StringLiteral,
    /// A comment.
    Comment,
    /// A number.
    Number,
    /// A constant.
    Constant,
    /// A function or command name.
    Function,
    /// A type.
    Type,
    /// The key of a value.
    Key,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
    /// A heading.
    Heading,
}

/// The tokens of a line, in order: where each ends, and its kind.
#[derive(Debug, Default)]
pub(super) struct TokenSpans(Vec<(usize, TokenKind)>);

impl TokenSpans {
    /// Adds a token of this kind from the end of the last one to `end`.
    pub(super) fn push(&mut self, end: usize, kind: TokenKind) {
        match self.0.last_mut() {
            None if end == 0 => {}
            Some((last, _)) if *last >= end => {}
            Some((last, same)) if *same == kind => *last = end,
            _ => self.0.push((end, kind)),
        }
    }

    /// Returns the end and kind of each token.
    pub(super) fn into_ends(self) -> impl Iterator<Item = (usize, TokenKind)> {
        self.0.into_iter()
    }
}
