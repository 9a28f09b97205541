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

mod code;
mod kind;
mod language;
mod languages;
mod lines;
mod markup;
mod scan;
mod word;

use kind::Pieces;
use language::{Form, Language, Quote};

pub use kind::Kind;

/// A line with more characters is data; some looking ahead is done within one,
/// so this also bounds what that costs.
const LONGEST_LINE: usize = 2_000;
/// A block with more lines is read by nobody.
const MOST_LINES: usize = 5_000;

/// Reads the lines of one block of code.
#[derive(Debug, Default)]
pub struct Highlighter {
    /// None where code is plain.
    reader: Option<Reader>,
    lines: usize,
}

/// A language being read.
#[derive(Debug)]
struct Reader {
    language: &'static Language,
    open: Open,
}

/// What the lines so far leave open.
#[derive(Debug, PartialEq)]
enum Open {
    Nothing,
    /// Comments, this many within each other.
    Comment(usize),
    Text(&'static Quote),
    /// A text that ends at a line of this.
    Until(String),
    /// An element between its angle brackets.
    Tag,
    /// A command that goes on.
    Line,
}

impl Highlighter {
    /// For a block that begins, with what stands after its fence. Code in a language that
    /// is not known is plain.
    pub fn new(info: &str) -> Self {
        Highlighter {
            reader: Language::of(info).map(|language| Reader {
                language,
                open: Open::Nothing,
            }),
            lines: 0,
        }
    }

    /// The pieces of the next line, which has no line ending. Blank lines may be left out.
    pub fn line<'a>(&mut self, line: &'a str) -> impl Iterator<Item = (&'a str, Kind)> + use<'a> {
        self.lines += 1;
        if self.lines > MOST_LINES || line.chars().nth(LONGEST_LINE).is_some() {
            self.reader = None;
        }
        let mut pieces = match &mut self.reader {
            Some(reader) => reader.line(line),
            None => Pieces::default(),
        };
        pieces.push(line.len(), Kind::Plain);
        let mut start = 0;
        pieces.ends().map(move |(end, kind)| {
            let piece = &line[start..end];
            start = end;
            (piece, kind)
        })
    }
}

impl Reader {
    fn line(&mut self, line: &str) -> Pieces {
        match self.language.form {
            Form::Code => code::read(self.language, &mut self.open, line, 0),
            Form::Markup => markup::read(&mut self.open, line),
            Form::Diff => lines::diff(line),
            Form::Markdown => lines::markdown(&mut self.open, line),
            Form::Console => lines::console(self.language, line),
        }
    }
}

#[cfg(test)]
mod tests;
