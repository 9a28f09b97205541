//! Parses what a single line of Markdown opens: fences, list markers, rules and headings.

/// A line, read from the left; columns count tabs as stops of four.
#[derive(Clone, Copy)]
pub(super) struct LineCursor<'a> {
    rest: &'a str,
    column: usize,
    /// Columns of a partly consumed tab that remain.
    pending_columns: usize,
}

impl<'a> LineCursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        LineCursor {
            rest: line,
            column: 0,
            pending_columns: 0,
        }
    }

    /// The line from the first character that is not white space.
    pub(super) fn text(&self) -> &'a str {
        self.rest.trim_start_matches([' ', '\t'])
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text().is_empty()
    }

    /// Returns the columns of white space ahead.
    pub(super) fn indent(&self) -> usize {
        let mut ahead = *self;
        ahead.skip_space(usize::MAX)
    }

    /// Skips up to `most` columns of white space; returns how many.
    pub(super) fn skip_space(&mut self, most: usize) -> usize {
        let mut skipped = 0;
        while skipped < most {
            if self.pending_columns > 0 {
                self.pending_columns -= 1;
            } else if let Some(rest) = self.rest.strip_prefix(' ') {
                self.rest = rest;
                self.column += 1;
            } else if let Some(rest) = self.rest.strip_prefix('\t') {
                self.rest = rest;
                self.pending_columns = 3 - self.column % 4;
                self.column += self.pending_columns + 1;
            } else {
                break;
            }
            skipped += 1;
        }
        skipped
    }

    /// Skips the white space ahead and `bytes` of the text after it.
    pub(super) fn skip_text(&mut self, bytes: usize) {
        self.skip_space(usize::MAX);
        self.rest = &self.rest[bytes..];
        self.column += bytes;
    }
}

/// An open code fence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    /// Indentation of the fence, which is also removed from its lines.
    indent: usize,
}

impl Fence {
    /// Parses an opening fence and its info string.
    pub(super) fn parse(text: &str, indent: usize) -> Option<(Fence, &str)> {
        let mark = text
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        if length < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        Some((
            Fence {
                mark,
                length,
                indent,
            },
            info.trim(),
        ))
    }

    pub(super) fn is_closed_by(&self, line: &LineCursor) -> bool {
        let text = line.text();
        let after = text.trim_start_matches(self.mark);
        line.indent() < 4 && text.len() - after.len() >= self.length && after.trim().is_empty()
    }

    /// Removes the fence's indentation from a line of code.
    pub(super) fn unindent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line
            .bytes()
            .take(self.indent)
            .take_while(|&byte| byte == b' ')
            .count();
        &line[spaces..]
    }
}

/// A list marker.
pub(super) struct ListMarker {
    pub(super) bytes: usize,
    /// Whether this list may interrupt a paragraph.
    pub(super) interrupts: bool,
}

pub(super) fn parse_list_marker(text: &str) -> Option<ListMarker> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let marks: &[char] = if digits == 0 {
        &['-', '+', '*']
    } else {
        &['.', ')']
    };
    let after = text.get(digits..)?.strip_prefix(marks)?;
    if digits > 9 || !(after.is_empty() || after.starts_with([' ', '\t'])) {
        return None;
    }
    let first = digits == 0 || text[..digits].parse() == Ok(1);
    Some(ListMarker {
        bytes: digits + 1,
        interrupts: first && !after.trim().is_empty(),
    })
}

/// Returns the length of `[^label]:`, if the text begins a footnote.
pub(super) fn footnote_marker_len(text: &str) -> Option<usize> {
    let label = text.strip_prefix("[^")?;
    let end = label.find([']', '['])?;
    let named = !label[..end].trim().is_empty();
    (named && label[end..].starts_with("]:")).then_some(end + 4)
}

pub(super) fn is_rule(text: &str) -> bool {
    let Some(mark) = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '-' | '_' | '*'))
    else {
        return false;
    };
    text.chars().all(|c| c == mark || c == ' ' || c == '\t') && text.matches(mark).count() > 2
}

pub(super) fn is_heading(text: &str) -> bool {
    let after = text.trim_start_matches('#');
    (1..=6).contains(&(text.len() - after.len()))
        && (after.is_empty() || after.starts_with([' ', '\t']))
}

/// Returns whether the text, below a paragraph, turns it into a heading.
pub(super) fn is_setext_underline(text: &str) -> bool {
    let text = text.trim_end();
    !text.is_empty() && (text.bytes().all(|b| b == b'=') || text.bytes().all(|b| b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_counts_to_its_stop() {
        let mut cursor = LineCursor::new(" \tx");
        assert_eq!(cursor.indent(), 4);
        assert_eq!(cursor.skip_space(2), 2);
        assert_eq!(cursor.indent(), 2);
    }

    #[test]
    fn a_fence_is_closed_by_one_as_long() {
        let Some((fence, info)) = Fence::parse("~~~~ rust ", 1) else {
            panic!("a fence is opened");
        };
        assert_eq!(info, "rust");
        assert!(!fence.is_closed_by(&LineCursor::new("~~~")));
        assert!(fence.is_closed_by(&LineCursor::new("  ~~~~~ ")));
        assert_eq!(fence.unindent("   x"), "  x");
        assert_eq!(Fence::parse("``` a`b", 0), None);
    }

    #[test]
    fn only_a_list_from_one_interrupts_a_paragraph() {
        let interrupts = |text| parse_list_marker(text).map(|marker| marker.interrupts);
        assert_eq!(interrupts("- a"), Some(true));
        assert_eq!(interrupts("1. a"), Some(true));
        assert_eq!(interrupts("2) a"), Some(false));
        assert_eq!(interrupts("-"), Some(false));
        assert_eq!(interrupts("-a"), None);
    }
}
