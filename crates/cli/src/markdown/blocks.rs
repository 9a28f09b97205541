//! Splits a Markdown text into top-level blocks while it streams.
//!
//! Reads one line at a time and tracks containers and leaves as CommonMark does, as far as
//! needed to decide which lines belong together.
//!
//! Invariant: the decision about a line depends only on that line and those before it. A block
//! that is cut off here reads the same alone as in its text; joining lines unnecessarily only
//! delays their output.

use super::container::Container;
use super::html::HtmlBlockEnd;
use super::line::{Fence, LineCursor, is_heading, is_rule, is_setext_underline};

/// Deeper nesting does not occur in real documents and would only be slow.
const MAX_DEPTH: usize = 64;

/// The role of a line.
#[derive(Debug, PartialEq)]
pub(super) enum LineRole<'a> {
    /// It belongs to the block that is open, or opens one.
    Block {
        /// It begins a new block: the one before it is complete.
        begins: bool,
        /// It ends the block it belongs to.
        ends: bool,
    },
    /// It opens a fence outside every container; any block is complete.
    FenceOpen(&'a str),
    /// It is code in such a fence.
    Code(&'a str),
    /// It closes such a fence.
    FenceClose,
}

#[derive(Clone, Debug, PartialEq)]
enum Leaf {
    None,
    Paragraph,
    Indented,
    Fence(Fence),
    Html(HtmlBlockEnd),
}

/// The blocks that are open after the lines so far.
#[derive(Debug)]
pub(super) struct BlockScanner {
    containers: Vec<Container>,
    leaf: Leaf,
    /// Whether the current line nests too deep.
    too_deep: bool,
    /// Whether the current line began a top-level block.
    began: bool,
}

impl BlockScanner {
    pub(super) fn new() -> Self {
        BlockScanner {
            containers: Vec::new(),
            leaf: Leaf::None,
            too_deep: false,
            began: false,
        }
    }

    /// Returns whether the last line nested deeper than [`MAX_DEPTH`].
    pub(super) fn is_too_deep(&self) -> bool {
        self.too_deep
    }

    /// Returns whether a top-level code fence is open.
    pub(super) fn is_code(&self) -> bool {
        self.containers.is_empty() && matches!(self.leaf, Leaf::Fence(_))
    }

    /// Classifies the next line, given without its line ending.
    pub(super) fn classify<'a>(&mut self, line: &'a str) -> LineRole<'a> {
        if let (true, Leaf::Fence(fence)) = (self.containers.is_empty(), &self.leaf) {
            if fence.is_closed_by(&LineCursor::new(line)) {
                self.leaf = Leaf::None;
                return LineRole::FenceClose;
            }
            return LineRole::Code(fence.unindent(line));
        }
        self.began = false;
        self.too_deep = false;
        self.process(line);
        if let (true, Leaf::Fence(_)) = (self.containers.is_empty(), &self.leaf) {
            let opened = Fence::parse(LineCursor::new(line).text(), 0);
            return LineRole::FenceOpen(opened.map_or("", |(_, info)| info));
        }
        let ends = self.containers.is_empty() && self.leaf == Leaf::None;
        LineRole::Block {
            begins: self.began,
            ends,
        }
    }

    fn process(&mut self, line: &str) {
        let mut cursor = LineCursor::new(line);
        let kept = self.match_containers(&mut cursor);
        let whole = kept == self.containers.len();
        if whole {
            match &self.leaf {
                Leaf::Fence(fence) => {
                    if fence.is_closed_by(&cursor) {
                        self.leaf = Leaf::None;
                    }
                    return;
                }
                Leaf::Html(end) => {
                    if end.is_reached_by(cursor.text()) {
                        self.leaf = Leaf::None;
                    }
                    return;
                }
                Leaf::Indented if cursor.is_blank() || cursor.indent() > 3 => return,
                _ => {}
            }
        }
        if cursor.is_blank() {
            self.handle_blank(kept);
            return;
        }
        let fresh = self.open_containers(&mut cursor, kept);
        self.read_leaf(&cursor, kept, fresh);
    }

    /// Skips the markers that continue open containers; returns how many continue.
    fn match_containers(&self, cursor: &mut LineCursor) -> usize {
        let open = self.containers.iter();
        open.take_while(|container| container.try_continue(cursor))
            .count()
    }

    fn handle_blank(&mut self, kept: usize) {
        self.containers.truncate(kept);
        // After a blank line nothing can be added to an empty item, though the list
        // may continue.
        if let Some(Container::Item {
            content,
            empty: true,
        }) = self.containers.last_mut()
        {
            *content = usize::MAX;
        }
        self.leaf = Leaf::None;
    }

    /// Opens the containers that begin on this line; returns whether any did.
    fn open_containers(&mut self, cursor: &mut LineCursor, kept: usize) -> bool {
        let mut fresh = false;
        loop {
            let paragraph = !fresh && self.leaf == Leaf::Paragraph;
            let interrupts = paragraph && kept == self.containers.len();
            let Some(container) = Container::try_begin(cursor, interrupts) else {
                return fresh;
            };
            if !fresh {
                self.close_unmatched(kept, container.is_item());
                fresh = true;
            }
            if self.containers.len() == MAX_DEPTH {
                self.too_deep = true;
                return fresh;
            }
            self.mark_filled();
            self.containers.push(container);
        }
    }

    /// Parses the rest of a line after its containers.
    fn read_leaf(&mut self, cursor: &LineCursor, kept: usize, fresh: bool) {
        let text = cursor.text();
        let paragraph = !fresh && self.leaf == Leaf::Paragraph;
        let whole = kept == self.containers.len();
        if text.is_empty() {
            return;
        }
        if cursor.indent() > 3 {
            if !paragraph {
                self.open_leaf(kept, fresh, Leaf::Indented);
            }
        } else if paragraph && whole && is_setext_underline(text) {
            self.leaf = Leaf::None;
        } else if is_rule(text) || is_heading(text) {
            self.open_leaf(kept, fresh, Leaf::None);
        } else if let Some((fence, _)) = Fence::parse(text, cursor.indent()) {
            self.open_leaf(kept, fresh, Leaf::Fence(fence));
        } else if let Some(end) = HtmlBlockEnd::detect(text, paragraph) {
            let leaf = if end.is_reached_by(text) {
                Leaf::None
            } else {
                Leaf::Html(end)
            };
            self.open_leaf(kept, fresh, leaf);
        } else if !paragraph {
            self.open_leaf(kept, fresh, Leaf::Paragraph);
        }
    }

    /// Opens a leaf in the containers that continue or have just begun.
    fn open_leaf(&mut self, kept: usize, fresh: bool, leaf: Leaf) {
        if !fresh {
            self.close_unmatched(kept, false);
        }
        self.mark_filled();
        self.leaf = leaf;
    }

    /// Marks the innermost container as not empty.
    fn mark_filled(&mut self) {
        if let Some(Container::Item { empty, .. }) = self.containers.last_mut() {
            *empty = false;
        }
    }

    /// Closes the blocks that do not continue because something else begins.
    fn close_unmatched(&mut self, kept: usize, for_item: bool) {
        // Items of one list are one block.
        let sibling = for_item && self.containers.first().is_some_and(Container::is_item);
        if kept == 0 {
            self.began = !sibling;
        }
        self.containers.truncate(kept);
        self.leaf = Leaf::None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a text, as the lines of each.
    fn blocks(text: &str) -> Vec<Vec<&str>> {
        let mut reader = BlockScanner::new();
        let (mut all, mut open) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let (begins, ends) = match reader.classify(line) {
                LineRole::Block { begins, ends } => (begins, ends),
                LineRole::FenceOpen(_) => (true, false),
                LineRole::Code(_) => (false, false),
                LineRole::FenceClose => (false, true),
            };
            if begins {
                all.push(std::mem::take(&mut open));
            }
            open.push(line);
            if ends {
                all.push(std::mem::take(&mut open));
            }
        }
        all.push(open);
        all.retain(|lines| lines.iter().any(|line| !line.is_empty()));
        all
    }

    #[test]
    fn a_paragraph_ends_at_a_blank_line_or_at_a_block() {
        assert_eq!(blocks("a\nb\n\nc"), [vec!["a", "b", ""], vec!["c"]]);
        assert_eq!(blocks("a\n# b\nc"), [["a"], ["# b"], ["c"]]);
        assert_eq!(blocks("a\n===\nb"), [vec!["a", "==="], vec!["b"]]);
    }

    #[test]
    fn a_list_goes_on_over_blank_lines() {
        assert_eq!(
            blocks("- a\n\n  b\n\n- c\nlazy\n\nd"),
            [vec!["- a", "", "  b", "", "- c", "lazy", ""], vec!["d"]]
        );
    }

    #[test]
    fn a_fence_keeps_its_blank_lines() {
        assert_eq!(
            blocks("```\na\n\nb\n```\nc"),
            [vec!["```", "a", "", "b", "```"], vec!["c"]]
        );
        assert_eq!(
            blocks("- ```\n  a\n\n  # b\n  ```\nc"),
            [vec!["- ```", "  a", "", "  # b", "  ```"], vec!["c"]]
        );
    }

    #[test]
    fn a_comment_keeps_its_blank_lines() {
        assert_eq!(
            blocks("<!-- a\n\n```\n-->\nb"),
            [vec!["<!-- a", "", "```", "-->"], vec!["b"]]
        );
    }
}
