//! What a piece of code is, and what that looks like.

use anstyle::{AnsiColor, Style as Look};

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Plain,
    Keyword,
    Text,
    Comment,
    Number,
    Constant,
    Function,
    Type,
    Key,
    Added,
    Removed,
    Heading,
}

impl Kind {
    /// In the terminal's own colors, which suit its background.
    pub(super) fn look(self) -> Look {
        let color = match self {
            Kind::Plain => return Look::new(),
            Kind::Comment => return Look::new().dimmed(),
            Kind::Heading => return Look::new().bold(),
            Kind::Keyword => AnsiColor::Magenta,
            Kind::Text | Kind::Added => AnsiColor::Green,
            Kind::Number | Kind::Constant => AnsiColor::Cyan,
            Kind::Function | Kind::Key => AnsiColor::Blue,
            Kind::Type => AnsiColor::Yellow,
            Kind::Removed => AnsiColor::Red,
        };
        color.on_default()
    }
}

/// The kinds of a line, in order: where each piece ends, and what it is.
#[derive(Debug, Default)]
pub(super) struct Pieces(Vec<(usize, Kind)>);

impl Pieces {
    /// What lies between the last piece and `end` is of this kind.
    pub(super) fn push(&mut self, end: usize, kind: Kind) {
        match self.0.last_mut() {
            None if end == 0 => {}
            Some((last, _)) if *last >= end => {}
            Some((last, same)) if *same == kind => *last = end,
            _ => self.0.push((end, kind)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Kind)> {
        self.0.iter().copied()
    }
}
