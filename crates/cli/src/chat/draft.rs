//! The draft: the unfinished end of a streamed answer on the screen, which is erased and drawn
//! again as more text arrives.

use std::time::{Duration, Instant};

use crate::ui::Ui;

/// Minimum time between redraws.
const MIN_REDRAW_INTERVAL: Duration = Duration::from_millis(40);

/// The draft lines currently on the screen.
#[derive(Debug)]
pub(super) struct Draft {
    /// Maximum number of lines that can be erased; 0 if the terminal cannot redraw.
    max_lines: usize,
    lines: usize,
    drawn_at: Option<Instant>,
}

impl Draft {
    pub(super) fn new(ui: &Ui) -> Self {
        Self {
            max_lines: ui.height.map_or(0, |height| height.saturating_sub(2)),
            lines: 0,
            drawn_at: None,
        }
    }

    /// Returns whether a redraw is due.
    pub(super) fn is_due(&self) -> bool {
        self.max_lines > 0
            && self
                .drawn_at
                .is_none_or(|at| at.elapsed() >= MIN_REDRAW_INTERVAL)
    }

    /// Returns the last lines of a draft that can be erased again, and records them as drawn.
    pub(super) fn draw<'t>(&mut self, text: &'t str) -> &'t str {
        self.drawn_at = Some(Instant::now());
        let lines = text.matches('\n').count();
        self.lines = lines.min(self.max_lines);
        match text.match_indices('\n').rev().nth(self.lines) {
            Some((end, _)) => &text[end + 1..],
            None => text,
        }
    }

    /// Returns the escape sequence that erases the draft.
    pub(super) fn erase(&mut self) -> String {
        match std::mem::take(&mut self.lines) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_drawn_than_can_be_taken_back() {
        let mut draft = Draft {
            max_lines: 2,
            lines: 0,
            drawn_at: None,
        };
        assert_eq!(draft.draw("a\nb\nc\n"), "b\nc\n");
        assert_eq!(draft.erase(), "\x1b[2A\r\x1b[J");
        assert_eq!(draft.erase(), "");
        assert_eq!(draft.draw("a\n"), "a\n");
        assert_eq!(draft.erase(), "\x1b[1A\r\x1b[J");
    }
}
