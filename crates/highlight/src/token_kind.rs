//! What a piece of code is.

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Nothing in particular.
    Plain,
    /// A word of the language.
    Keyword,
    /// A text in quotes.
    StringLiteral,
    /// A comment.
    Comment,
    /// A number.
    Number,
    /// A name for a value that does not change.
    Constant,
    /// What is called.
    Function,
    /// What a value is.
    Type,
    /// What a value stands under.
    Key,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
    /// A heading.
    Heading,
}

/// The kinds of a line, in order: where each piece ends, and what it is.
#[derive(Debug, Default)]
pub(super) struct TokenSpans(Vec<(usize, TokenKind)>);

impl TokenSpans {
    /// What lies between the last piece and `end` is of this kind.
    pub(super) fn push(&mut self, end: usize, kind: TokenKind) {
        match self.0.last_mut() {
            None if end == 0 => {}
            Some((last, _)) if *last >= end => {}
            Some((last, same)) if *same == kind => *last = end,
            _ => self.0.push((end, kind)),
        }
    }

    /// Where each piece ends, and what it is.
    pub(super) fn into_ends(self) -> impl Iterator<Item = (usize, TokenKind)> {
        self.0.into_iter()
    }
}
