//! Code in color: what its pieces are. What each looks like is up to whoever shows it.
//!
//! Languages are read as a reader skims them: words, quotes, comments. That
//! needs no grammar, never fails, and takes time in proportion to the text,
//! whatever the text is.
//!
//! ```
//! use throughline_highlight::{Highlighter, Kind};
//!
//! let mut code = Highlighter::new("rust");
//! let pieces: Vec<_> = code.line("let a = 1;").collect();
//! assert_eq!(pieces[0], ("let", Kind::Keyword));
//! assert_eq!(pieces[2], ("1", Kind::Number));
//! ```
//!
//! Invariants: the pieces of a line, one after the other, are the line; what they
//! are depends on that line and those before it.

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

/// A line with more characters is data; some looking ahead is done within one,
/// so this also bounds what that costs.
const MAX_LINE_CHARS: usize = 2_000;
/// A block with more lines is read by nobody.
const MAX_LINES: usize = 5_000;

/// Reads the lines of one block of code.
#[derive(Debug, Default)]
pub struct Highlighter {
    /// None where code is plain.
    lexer: Option<Lexer>,
    lines: usize,
}

/// A language being read.
#[derive(Debug)]
struct Lexer {
    language: &'static Language,
    state: LineState,
}

/// What the lines so far leave open.
#[derive(Debug, PartialEq)]
enum LineState {
    Initial,
    /// Comments, this many within each other.
    Comment(usize),
    Quoted(&'static Quote),
    /// A text that ends at a line of this.
    UntilLine(String),
    /// An element between its angle brackets.
    Tag,
    /// A command that goes on.
    CommandContinuation,
}

impl Highlighter {
    /// For a block that begins, with what stands after its fence. Code in a language that
    /// is not known is plain.
    pub fn new(info: &str) -> Self {
        Highlighter {
            lexer: Language::from_info(info).map(|language| Lexer {
                language,
                state: LineState::Initial,
            }),
            lines: 0,
        }
    }

    /// The pieces of the next line, which has no line ending. Blank lines may be left out.
    pub fn highlight_line<'a>(
        &mut self,
        line: &'a str,
    ) -> impl Iterator<Item = (&'a str, TokenKind)> + use<'a> {
        self.lines += 1;
        if self.lines > MAX_LINES || line.chars().nth(MAX_LINE_CHARS).is_some() {
            self.lexer = None;
        }
        let mut pieces = match &mut self.lexer {
            Some(reader) => reader.lex_line(line),
            None => TokenSpans::default(),
        };
        pieces.push(line.len(), TokenKind::Plain);
        let mut start = 0;
        pieces.into_ends().map(move |(end, kind)| {
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
