//! Container blocks of Markdown: how they begin, and which lines continue them.

use super::line::{LineCursor, footnote_marker_len, is_rule, parse_list_marker};

/// A block that holds others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Container {
    Quote,
    Item {
        /// Columns its content is indented by.
        content: usize,
        /// Whether it has no content yet.
        empty: bool,
    },
    Footnote,
}

/// Columns a footnote's content is indented by.
const FOOTNOTE_INDENT: usize = 4;

impl Container {
    pub(super) fn is_item(&self) -> bool {
        matches!(self, Container::Item { .. })
    }

    /// Skips the marker that continues this container; returns whether the line does.
    pub(super) fn try_continue(&self, cursor: &mut LineCursor) -> bool {
        let indent = match *self {
            Container::Quote => {
                let quoted = cursor.indent() < 4 && cursor.text().starts_with('>');
                if quoted {
                    skip_quote_marker(cursor);
                }
                return quoted;
            }
            Container::Item { content, .. } => content,
            Container::Footnote => FOOTNOTE_INDENT,
        };
        if cursor.is_blank() {
            return true;
        }
        let within = cursor.indent() >= indent;
        if within {
            cursor.skip_space(indent);
        }
        within
    }

    /// Skips the marker of a container that begins here and returns the container.
    pub(super) fn try_begin(cursor: &mut LineCursor, in_paragraph: bool) -> Option<Container> {
        let before = cursor.indent();
        let text = cursor.text();
        if before > 3 {
            return None;
        }
        if text.starts_with('>') {
            skip_quote_marker(cursor);
            return Some(Container::Quote);
        }
        // A thematic break of dashes or stars looks like a list marker and takes precedence.
        if is_rule(text) {
            return None;
        }
        if let Some(marker) =
            parse_list_marker(text).filter(|marker| marker.interrupts || !in_paragraph)
        {
            cursor.skip_text(marker.bytes);
            let (after, empty) = (cursor.indent(), cursor.is_blank());
            // Five or more columns count as one, followed by indented code.
            let space = if empty || after > 4 { 1 } else { after };
            cursor.skip_space(space);
            let content = before + marker.bytes + space;
            return Some(Container::Item { content, empty });
        }
        cursor.skip_text(footnote_marker_len(text)?);
        Some(Container::Footnote)
    }
}

fn skip_quote_marker(cursor: &mut LineCursor) {
    cursor.skip_text(1);
    cursor.skip_space(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_begins_after_the_marker() {
        let begun = |line| Container::try_begin(&mut LineCursor::new(line), false);
        assert_eq!(
            begun(" 10.  a"),
            Some(Container::Item {
                content: 6,
                empty: false
            })
        );
        assert_eq!(
            begun("-      code"),
            Some(Container::Item {
                content: 2,
                empty: false
            })
        );
        assert_eq!(
            begun("-"),
            Some(Container::Item {
                content: 2,
                empty: true
            })
        );
        assert_eq!(begun("- - -"), None);
        assert_eq!(begun("[^a]: b"), Some(Container::Footnote));
    }

    #[test]
    fn an_item_goes_on_where_its_content_is() {
        let item = Container::Item {
            content: 2,
            empty: false,
        };
        assert!(item.try_continue(&mut LineCursor::new("  a")));
        assert!(item.try_continue(&mut LineCursor::new("")));
        assert!(!item.try_continue(&mut LineCursor::new(" a")));
    }
}
