//! Code in color.
//!
//! Languages are read as a reader skims them: words, quotes, comments. That
//! needs no grammar, never fails, and takes time in proportion to the text,
//! whatever the text is.
//!
//! Invariants: colors are added and no character is changed; what a line looks
//! like depends on that line and those before it.

mod code;
mod kind;
mod language;
mod languages;
mod lines;
mod markup;
mod scan;
mod word;

use super::inline::paint;
use kind::Pieces;
use language::{Form, Language, Quote};

/// A line with more characters is data; some looking ahead is done within one,
/// so this also bounds what that costs.
const LONGEST_LINE: usize = 2_000;
/// A block with more lines is read by nobody.
const MOST_LINES: usize = 5_000;

/// Writes the lines of one block of code.
#[derive(Debug, Default)]
pub(super) struct Highlighter {
    /// None where code is shown plain.
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
    /// For a block that begins, with what stands after its fence.
    pub(super) fn new(info: &str, color: bool) -> Self {
        let language = if color { Language::of(info) } else { None };
        Highlighter {
            reader: language.map(|language| Reader {
                language,
                open: Open::Nothing,
            }),
            lines: 0,
        }
    }

    /// Writes the next line, which is safe and has no line ending. Blank lines
    /// may be left out.
    pub(super) fn line(&mut self, line: &str, out: &mut String) {
        self.lines += 1;
        if self.lines > MOST_LINES || line.chars().nth(LONGEST_LINE).is_some() {
            self.reader = None;
        }
        let Some(reader) = &mut self.reader else {
            out.push_str(line);
            return;
        };
        let mut start = 0;
        for (end, kind) in reader.line(line).iter() {
            paint(&line[start..end], kind.look(), true, out);
            start = end;
        }
        out.push_str(&line[start..]);
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
