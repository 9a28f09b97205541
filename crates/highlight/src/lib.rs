//! Syntax highlighting: splits code into tokens with kinds, and leaves the colors to the
//! caller.
//!
//! Languages are lexed superficially: words, quotes, comments. That needs no grammar, never
//! fails, and takes time linear in the length of the text.
//!
//! ```
//! use throughline_highlight::{Highlighter, TokenKind};
//!
//! let mut code = Highlighter::new("rust");
//! let tokens: Vec<_> = code.highlight_line("let a = 1;").collect();
//! assert_eq!(tokens[0], ("let", TokenKind::Keyword));
//! assert_eq!(tokens[2], ("1", TokenKind::Number));
//! ```
//!
//! Invariants: the tokens of a line, concatenated, are the line; their kinds depend only on
//! that line and those before it.

mod classify;
mod code_lexer;
mod language;
mod languages;
mod line_lexers;
mod literals;
mod markup_lexer;
mod token_kind;

use language::{Language, LexerKind, Quote};
use token_kind::TokenSpans;

pub use token_kind::TokenKind;

/// The maximum length of a highlighted line; longer lines are data. This also bounds the cost
/// of lookahead within a line.
const MAX_LINE_CHARS: usize = 2_000;
/// The maximum number of highlighted lines in a block.
const MAX_LINES: usize = 5_000;

/// Highlights the lines of one block of code.
#[derive(Debug, Default)]
pub struct Highlighter {
    /// `None` for plain text.
    lexer: Option<Lexer>,
    lines: usize,
}

/// The lexer of a language, with its state between lines.
#[derive(Debug)]
struct Lexer {
    language: &'static Language,
    state: LineState,
}

/// What the lines so far leave open.
#[derive(Debug, PartialEq)]
enum LineState {
    Initial,
    /// A comment at this nesting depth.
    Comment(usize),
    Quoted(&'static Quote),
    /// A text that ends at a line with this content.
    UntilLine(String),
    /// A tag between its angle brackets.
    Tag,
    /// A command that continues on the next line.
    CommandContinuation,
}

impl Highlighter {
    /// Creates a highlighter for a block, from the info string after its code fence. Code in
    /// an unknown language is plain.
    pub fn new(info: &str) -> Self {
        Highlighter {
            lexer: Language::from_info(info).map(|language| Lexer {
                language,
                state: LineState::Initial,
            }),
            lines: 0,
        }
    }

    /// Returns the tokens of the next line, given without its line ending. Blank lines may be
    /// skipped.
    pub fn highlight_line<'a>(
        &mut self,
        line: &'a str,
    ) -> impl Iterator<Item = (&'a str, TokenKind)> + use<'a> {
        self.lines += 1;
        if self.lines > MAX_LINES || line.chars().nth(MAX_LINE_CHARS).is_some() {
            self.lexer = None;
        }
        let mut spans = match &mut self.lexer {
            Some(reader) => reader.lex_line(line),
            None => TokenSpans::default(),
        };
        spans.push(line.len(), TokenKind::Plain);
        let mut start = 0;
        spans.into_ends().map(move |(end, kind)| {
            let piece = &line[start..end];
            start = end;
            (piece, kind)
        })
    }
}

impl Lexer {
    fn lex_line(&mut self, line: &str) -> TokenSpans {
        match self.language.lexer_kind {
            LexerKind::Code => code_lexer::lex_line(self.language, &mut self.state, line, 0),
            LexerKind::Markup => markup_lexer::lex_line(&mut self.state, line),
            LexerKind::Diff => line_lexers::lex_diff(line),
            LexerKind::Markdown => line_lexers::lex_markdown(&mut self.state, line),
            LexerKind::Console => line_lexers::lex_console(self.language, line),
        }
    }
}

#[cfg(test)]
mod tests;
