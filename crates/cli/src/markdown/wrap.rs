//! Computes display width and wraps text into lines.
//!
//! A line is a byte range of its text, so that callers can still apply the styles of that
//! range.

use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Punctuation that may not begin a line of wide characters.
const CLOSING_PUNCTUATION: &str = "、。，．！？：；）］｝」』】》〉〕ー…";

/// Returns the display width of a text, as [`wrap_lines`] counts it.
pub(super) fn width(text: &str) -> usize {
    clusters(text).map(|(_, columns)| columns).sum()
}

/// Returns the longest prefix that fits, in bytes and in columns.
pub(super) fn fit_prefix(text: &str, room: usize) -> (usize, usize) {
    let (mut bytes, mut used) = (0, 0);
    for (length, columns) in clusters(text) {
        if used + columns > room {
            break;
        }
        bytes += length;
        used += columns;
    }
    (bytes, used)
}

/// Breaks a text into lines of at most `room` columns.
///
/// Breaks at spaces (which are dropped there) and around wide characters, and
/// inside a word only when it is longer than a line. A newline always breaks.
pub(super) fn wrap_lines(text: &str, room: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut line = LineState::default();
    let mut before = PreviousCluster::Space;
    let mut at = 0;
    for (length, columns) in clusters(text) {
        let cluster = &text[at..at + length];
        match cluster {
            "\n" => {
                lines.push(trim_trailing_spaces(text, line.start..at));
                line = LineState {
                    start: at + 1,
                    ..LineState::default()
                };
                before = PreviousCluster::Space;
            }
            " " => {
                line.columns += 1;
                let end = match (&line.break_at, before) {
                    (Some(open), PreviousCluster::Space) => Some(open.end),
                    // Spaces that open a line are its indentation.
                    (None, PreviousCluster::Space) => None,
                    _ => Some(at),
                };
                line.break_at = end.map(|end| BreakPoint {
                    end,
                    next: at + 1,
                    columns: line.columns,
                });
                before = PreviousCluster::Space;
            }
            _ => {
                let wide = columns > 1;
                let splits = match before {
                    PreviousCluster::Space => false,
                    PreviousCluster::Wide => true,
                    PreviousCluster::Narrow => wide,
                };
                if splits && at > line.start && !CLOSING_PUNCTUATION.contains(cluster) {
                    line.break_at = Some(BreakPoint {
                        end: at,
                        next: at,
                        columns: line.columns,
                    });
                }
                if line.columns + columns > room && at > line.start {
                    lines.push(trim_trailing_spaces(text, line.cut(at)));
                }
                line.columns += columns;
                before = if wide {
                    PreviousCluster::Wide
                } else {
                    PreviousCluster::Narrow
                };
            }
        }
        at += length;
    }
    lines.push(trim_trailing_spaces(text, line.start..text.len()));
    lines
}

/// The line being filled.
#[derive(Default)]
struct LineState {
    start: usize,
    columns: usize,
    break_at: Option<BreakPoint>,
}

/// The last possible break of the line.
struct BreakPoint {
    end: usize,
    next: usize,
    columns: usize,
}

#[derive(Clone, Copy)]
enum PreviousCluster {
    Space,
    Narrow,
    Wide,
}

impl LineState {
    /// Ends the line at its last break point, or here if it has none.
    fn cut(&mut self, here: usize) -> Range<usize> {
        let at = self.break_at.take().unwrap_or(BreakPoint {
            end: here,
            next: here,
            columns: self.columns,
        });
        let done = self.start..at.end;
        self.start = at.next;
        self.columns -= at.columns;
        done
    }
}

fn trim_trailing_spaces(text: &str, line: Range<usize>) -> Range<usize> {
    let kept = text[line.clone()].trim_end_matches(' ').len();
    line.start..line.start + kept
}

/// Iterates over grapheme clusters, as bytes and columns.
fn clusters(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (length, columns) = next_cluster(&text[at..])?;
        at += length;
        Some((length, columns))
    })
}

fn next_cluster(text: &str) -> Option<(usize, usize)> {
    match text.as_bytes() {
        [] => return None,
        [b'\n', ..] => return Some((1, 0)),
        // Fast path for ASCII.
        [b' '..=b'~'] | [b' '..=b'~', b'\n'..=b'~', ..] => return Some((1, 1)),
        _ => {}
    }
    let mut chars = text.char_indices();
    let (_, first) = chars.next()?;
    let mut marks = None;
    let (mut joined, mut flag) = (false, is_flag_half(first));
    let mut end = text.len();
    for (at, c) in chars {
        let mark = c.width() == Some(0) && c != '\n';
        let more = mark
            || matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
            || (joined && !c.is_ascii())
            || (flag && is_flag_half(c));
        if !mark && marks.is_none() {
            marks = Some(at);
        }
        if !more {
            end = at;
            break;
        }
        flag = false;
        joined = c == '\u{200d}';
    }
    let columns = text[..end].width();
    if columns <= 2 {
        return Some((end, columns));
    }
    // Not an emoji sequence: use the first character and its combining marks.
    let end = marks.unwrap_or(end);
    Some((end, text[..end].width()))
}

fn is_flag_half(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, room: usize) -> Vec<&str> {
        wrap_lines(text, room)
            .into_iter()
            .map(|line| &text[line])
            .collect()
    }

    #[test]
    fn words_fill_lines() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("one two", 7), ["one two"]);
        assert_eq!(wrapped("one\ntwo", 7), ["one", "two"]);
    }

    #[test]
    fn a_word_longer_than_a_line_is_broken() {
        assert_eq!(wrapped("a abcdefgh b", 5), ["a", "abcde", "fgh b"]);
    }

    #[test]
    fn wide_characters_count_two_and_break_anywhere() {
        assert_eq!(wrapped("日本語テキスト", 5), ["日本", "語テ", "キス", "ト"]);
        assert_eq!(wrapped("日本。語", 5), ["日", "本。", "語"]);
        assert_eq!(width("🎉日a"), 5);
    }

    #[test]
    fn joined_emoji_stay_together() {
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(width(family), 2);
        assert_eq!(wrapped(&format!("{family}{family}{family}"), 4).len(), 2);
        assert_eq!(width("🇫🇷"), 2);
        assert_eq!(width("e\u{301}"), 1);
    }

    #[test]
    fn indentation_of_a_line_is_kept() {
        assert_eq!(wrapped("  a b\n  c", 5), ["  a b", "  c"]);
    }
}
