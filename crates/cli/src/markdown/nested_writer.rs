//! Writes lines inside nested quotes, lists and footnotes.
//!
//! Invariant: some columns remain for the text at any nesting depth.

use anstyle::Style as Look;

use super::Style;
use super::block_renderer::to_label;
use super::inline::{StyledText, paint};

/// Minimum columns left for the text by containers.
const MIN_TEXT_COLUMNS: usize = 10;
const QUOTE_BAR: &str = "│";

/// The lines written so far and the open containers.
pub(super) struct NestedWriter {
    out: String,
    style: Style,
    open: Vec<OpenContainer>,
    /// Columns used by the containers.
    used_columns: usize,
    /// Whether a block directly precedes in the same container.
    needs_blank_line: bool,
}

struct OpenContainer {
    kind: ContainerKind,
    /// The marker of the first line, until it is written.
    marker: Option<String>,
    indent: usize,
    /// The container's start in the output.
    start: usize,
}

enum ContainerKind {
    Quote,
    List {
        number: Option<u64>,
        loose: bool,
        has_items: bool,
    },
    Item,
    Footnote,
}

impl NestedWriter {
    pub(super) fn new(style: Style) -> Self {
        NestedWriter {
            out: String::new(),
            style,
            open: Vec::new(),
            used_columns: 0,
            needs_blank_line: false,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn available_columns(&self) -> usize {
        self.style.width - self.used_columns
    }

    pub(super) fn open_quote(&mut self) {
        self.separate_block();
        self.open_container(ContainerKind::Quote, None, 2);
    }

    pub(super) fn open_list(&mut self, number: Option<u64>) {
        self.separate_block();
        self.open_container(
            ContainerKind::List {
                number,
                loose: false,
                has_items: false,
            },
            None,
            0,
        );
    }

    pub(super) fn open_item(&mut self) {
        let mut marker = String::from("-");
        if let Some(OpenContainer {
            kind:
                ContainerKind::List {
                    number,
                    loose,
                    has_items: begun,
                },
            ..
        }) = self.open.last_mut()
        {
            self.needs_blank_line = *begun && *loose;
            *begun = true;
            if let Some(number) = number {
                marker = format!("{number}.");
                *number = number.saturating_add(1);
            }
        }
        self.separate_block();
        self.open_marked(ContainerKind::Item, marker);
    }

    pub(super) fn open_footnote(&mut self, name: &str) {
        self.separate_block();
        self.open_marked(ContainerKind::Footnote, format!("[^{}]:", to_label(name)));
    }

    fn open_marked(&mut self, kind: ContainerKind, marker: String) {
        let mut text = StyledText::default();
        text.push(&marker, Look::new());
        let indent = text.width() + 1;
        if self.available_columns() >= MIN_TEXT_COLUMNS + indent {
            self.open_container(kind, Some(marker), indent);
        } else {
            self.write_text(&text);
            self.open_container(kind, None, 0);
        }
    }

    fn open_container(&mut self, kind: ContainerKind, marker: Option<String>, indent: usize) {
        let indent = if self.available_columns() >= MIN_TEXT_COLUMNS + indent {
            indent
        } else {
            0
        };
        self.used_columns += indent;
        self.open.push(OpenContainer {
            kind,
            marker,
            indent,
            start: self.out.len(),
        });
        self.needs_blank_line = false;
    }

    /// Closes the innermost container.
    pub(super) fn close_container(&mut self) {
        let Some(last) = self.open.last() else { return };
        let marked = matches!(last.kind, ContainerKind::Quote) || last.marker.is_some();
        if marked && last.start == self.out.len() {
            self.write_line("");
        }
        self.used_columns -= self.open.pop().map_or(0, |last| last.indent);
        self.needs_blank_line = true;
    }

    /// Records a paragraph: a list with a paragraph in an item is loose.
    pub(super) fn note_paragraph(&mut self) {
        if let [.., list, item] = self.open.as_mut_slice()
            && let (ContainerKind::List { loose, .. }, ContainerKind::Item) =
                (&mut list.kind, &item.kind)
        {
            *loose = true;
        }
    }

    /// Separates a new block from the one above, except in a tight list.
    pub(super) fn separate_block(&mut self) {
        if !std::mem::take(&mut self.needs_blank_line) {
            return;
        }
        if let [.., list, item] = self.open.as_slice()
            && let (ContainerKind::List { loose: false, .. }, ContainerKind::Item) =
                (&list.kind, &item.kind)
        {
            return;
        }
        self.write_line("");
    }

    /// Writes a block of lines that are already laid out.
    pub(super) fn write_lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.separate_block();
        for line in lines {
            self.write_line(line);
        }
        self.needs_blank_line = true;
    }

    /// Writes a block of text, wrapped.
    pub(super) fn write_text(&mut self, inline: &StyledText) {
        self.separate_block();
        let mut shown = String::new();
        for part in inline.wrap(self.available_columns()) {
            shown.clear();
            inline.write_range(part, self.style.color, &mut shown);
            self.write_line(&shown);
        }
        self.needs_blank_line = true;
    }

    fn write_line(&mut self, shown: &str) {
        let dim = Look::new().dimmed();
        // Spaces are written only when text follows, so that none trail.
        let mut spaces = 0;
        for container in &mut self.open {
            let mark = match (&container.kind, container.marker.take()) {
                (ContainerKind::Quote, _) if container.indent > 0 => Some((QUOTE_BAR.into(), dim)),
                (_, marker) => marker.map(|marker| (marker, Look::new())),
            };
            if let Some((mark, look)) = mark {
                self.out.extend(std::iter::repeat_n(' ', spaces));
                paint(&mark, look, self.style.color, &mut self.out);
                spaces = 1;
            } else {
                spaces += container.indent;
            }
        }
        if !shown.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', spaces));
            self.out.push_str(shown);
        }
        self.out.push('\n');
    }
}
