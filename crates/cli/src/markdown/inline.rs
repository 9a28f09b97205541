//! A run of styled text before it is wrapped into lines.

use std::ops::Range;

use anstyle::Style as Look;

use super::sanitize::sanitize;
use super::wrap;

/// Text with a style for each range.
///
/// Invariant: the text is safe to print and its only white space is space and
/// newline.
#[derive(Debug, Default)]
pub(super) struct StyledText {
    text: String,
    /// The end of each style's range; the last ends with the text.
    looks: Vec<(usize, Look)>,
}

impl StyledText {
    pub(super) fn push(&mut self, text: &str, look: Look) {
        if text.is_empty() {
            return;
        }
        for (i, part) in sanitize(text).split('\t').enumerate() {
            if i > 0 {
                self.text.push(' ');
            }
            self.text.push_str(part);
        }
        let end = self.text.len();
        match self.looks.last_mut() {
            Some((last, same)) if *same == look => *last = end,
            _ => self.looks.push((end, look)),
        }
    }

    pub(super) fn append(&mut self, other: &StyledText) {
        let mut start = 0;
        for &(end, look) in &other.looks {
            self.push(&other.text[start..end], look);
            start = end;
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn trim_end(&mut self) {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        self.looks
            .truncate(self.looks.partition_point(|&(last, _)| last < end) + 1);
        if let Some((last, _)) = self.looks.last_mut() {
            *last = end.min(*last);
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Joins everything into one line.
    pub(super) fn flatten(&mut self) {
        if self.text.contains('\n') {
            self.text = self.text.replace('\n', " ");
        }
    }

    pub(super) fn width(&self) -> usize {
        wrap::width(&self.text)
    }

    pub(super) fn wrap(&self, room: usize) -> Vec<Range<usize>> {
        wrap::wrap_lines(&self.text, room)
    }

    /// Writes a range of the text and resets the terminal's style.
    pub(super) fn write_range(&self, part: Range<usize>, color: bool, out: &mut String) {
        let mut at = part.start;
        let first = self.looks.partition_point(|&(end, _)| end <= at);
        for &(end, look) in &self.looks[first..] {
            if at >= part.end {
                break;
            }
            let end = end.min(part.end);
            paint(&self.text[at..end], look, color, out);
            at = end;
        }
    }

    /// Writes at most `room` columns, the last an ellipsis if there was more;
    /// returns the columns written.
    pub(super) fn write_truncated(&self, room: usize, color: bool, out: &mut String) -> usize {
        let (bytes, columns) = wrap::fit_prefix(&self.text, room);
        if bytes == self.text.len() {
            self.write_range(0..bytes, color, out);
            return columns;
        }
        let (bytes, columns) = wrap::fit_prefix(&self.text, room.saturating_sub(1));
        self.write_range(0..bytes, color, out);
        out.push('…');
        columns + 1
    }
}

/// Writes sanitized text in a style, or plainly without color.
pub(super) fn paint(text: &str, look: Look, color: bool, out: &mut String) {
    use std::fmt::Write as _;

    if !color || look.is_plain() || text.is_empty() {
        out.push_str(text);
    } else {
        // Writing to a string cannot fail.
        let _ = write!(out, "{look}{text}{look:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_keeps_its_look() {
        let mut inline = StyledText::default();
        inline.push("plain ", Look::new());
        inline.push("bold", Look::new().bold());
        let mut out = String::new();
        inline.write_range(3..8, true, &mut out);
        assert_eq!(out, "in \x1b[1mbo\x1b[0m");
    }

    #[test]
    fn a_cut_ends_in_an_ellipsis() {
        let mut inline = StyledText::default();
        inline.push("日本語", Look::new());
        let mut out = String::new();
        assert_eq!(inline.write_truncated(4, false, &mut out), 3);
        assert_eq!(out, "日…");
    }
}
