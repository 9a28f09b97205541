//! Blocks that hold blocks: how they begin, and which lines go on with them.

use super::line::{Cursor, footnote, is_rule, marker};

/// A block that holds others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Container {
    Quote,
    Item {
        /// Columns its content is indented by.
        content: usize,
        /// Whether it has none yet.
        empty: bool,
    },
    Note,
}

/// Columns a footnote's content is indented by.
const NOTE: usize = 4;

impl Container {
    pub(super) fn is_item(&self) -> bool {
        matches!(self, Container::Item { .. })
    }

    /// Passes what continues this container, if the line does.
    pub(super) fn goes_on(&self, cursor: &mut Cursor) -> bool {
        let indent = match *self {
            Container::Quote => {
                let quoted = cursor.indent() < 4 && cursor.text().starts_with('>');
                if quoted {
                    pass_quote(cursor);
                }
                return quoted;
            }
            Container::Item { content, .. } => content,
            Container::Note => NOTE,
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

    /// Passes the marker of a container that begins here, if one does.
    pub(super) fn begun(cursor: &mut Cursor, in_paragraph: bool) -> Option<Container> {
        let before = cursor.indent();
        let text = cursor.text();
        if before > 3 {
            return None;
        }
        if text.starts_with('>') {
            pass_quote(cursor);
            return Some(Container::Quote);
        }
        // A rule of dashes or stars looks like a list, and comes first.
        if is_rule(text) {
            return None;
        }
        if let Some(marker) = marker(text).filter(|marker| marker.interrupts || !in_paragraph) {
            cursor.skip_text(marker.bytes);
            let (after, empty) = (cursor.indent(), cursor.is_blank());
            // Five columns are one, and then indented code.
            let space = if empty || after > 4 { 1 } else { after };
            cursor.skip_space(space);
            let content = before + marker.bytes + space;
            return Some(Container::Item { content, empty });
        }
        cursor.skip_text(footnote(text)?);
        Some(Container::Note)
    }
}

fn pass_quote(cursor: &mut Cursor) {
    cursor.skip_text(1);
    cursor.skip_space(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_begins_after_the_marker() {
        let begun = |line| Container::begun(&mut Cursor::new(line), false);
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
        assert_eq!(begun("[^a]: b"), Some(Container::Note));
    }

    #[test]
    fn an_item_goes_on_where_its_content_is() {
        let item = Container::Item {
            content: 2,
            empty: false,
        };
        assert!(item.goes_on(&mut Cursor::new("  a")));
        assert!(item.goes_on(&mut Cursor::new("")));
        assert!(!item.goes_on(&mut Cursor::new(" a")));
    }
}
