//! Lines inside quotes, lists and footnotes.
//!
//! Invariant: however deep the nesting, some columns are left for the text.

use anstyle::Style as Look;

use super::Style;
use super::inline::{Inline, paint};
use super::page::label;

/// Columns that containers leave to what is in them.
const LEAST_ROOM: usize = 10;
const QUOTE: &str = "│";

/// The lines written so far, and the containers the next will be in.
pub(super) struct Nest {
    out: String,
    style: Style,
    open: Vec<Container>,
    /// Columns taken by the containers.
    used: usize,
    /// Whether something stands right above, in the same container.
    gap: bool,
}

struct Container {
    kind: Kind,
    /// What the first line begins with, until it is written.
    marker: Option<String>,
    indent: usize,
    /// Where the container begins in what is written.
    start: usize,
}

enum Kind {
    Quote,
    List {
        number: Option<u64>,
        loose: bool,
        begun: bool,
    },
    Item,
    Note,
}

impl Nest {
    pub(super) fn new(style: Style) -> Self {
        Nest {
            out: String::new(),
            style,
            open: Vec::new(),
            used: 0,
            gap: false,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn room(&self) -> usize {
        self.style.width - self.used
    }

    pub(super) fn quote(&mut self) {
        self.begin();
        self.enter(Kind::Quote, None, 2);
    }

    pub(super) fn list(&mut self, number: Option<u64>) {
        self.begin();
        self.enter(
            Kind::List {
                number,
                loose: false,
                begun: false,
            },
            None,
            0,
        );
    }

    pub(super) fn item(&mut self) {
        let mut marker = String::from("-");
        if let Some(Container {
            kind:
                Kind::List {
                    number,
                    loose,
                    begun,
                },
            ..
        }) = self.open.last_mut()
        {
            self.gap = *begun && *loose;
            *begun = true;
            if let Some(number) = number {
                marker = format!("{number}.");
                *number = number.saturating_add(1);
            }
        }
        self.begin();
        self.enter_marked(Kind::Item, marker);
    }

    pub(super) fn note(&mut self, name: &str) {
        self.begin();
        self.enter_marked(Kind::Note, format!("[^{}]:", label(name)));
    }

    fn enter_marked(&mut self, kind: Kind, marker: String) {
        let mut text = Inline::default();
        text.push(&marker, Look::new());
        let indent = text.width() + 1;
        if self.room() >= LEAST_ROOM + indent {
            self.enter(kind, Some(marker), indent);
        } else {
            self.inline(&text);
            self.enter(kind, None, 0);
        }
    }

    fn enter(&mut self, kind: Kind, marker: Option<String>, indent: usize) {
        let indent = if self.room() >= LEAST_ROOM + indent {
            indent
        } else {
            0
        };
        self.used += indent;
        self.open.push(Container {
            kind,
            marker,
            indent,
            start: self.out.len(),
        });
        self.gap = false;
    }

    /// Leaves the innermost container.
    pub(super) fn leave(&mut self) {
        let Some(last) = self.open.last() else { return };
        let marked = matches!(last.kind, Kind::Quote) || last.marker.is_some();
        if marked && last.start == self.out.len() {
            self.line("");
        }
        self.used -= self.open.pop().map_or(0, |last| last.indent);
        self.gap = true;
    }

    /// Notes a paragraph: a list with one in an item is a loose list.
    pub(super) fn paragraph(&mut self) {
        if let [.., list, item] = self.open.as_mut_slice()
            && let (Kind::List { loose, .. }, Kind::Item) = (&mut list.kind, &item.kind)
        {
            *loose = true;
        }
    }

    /// Keeps a new block apart from the one above, except in a tight list.
    pub(super) fn begin(&mut self) {
        if !std::mem::take(&mut self.gap) {
            return;
        }
        if let [.., list, item] = self.open.as_slice()
            && let (Kind::List { loose: false, .. }, Kind::Item) = (&list.kind, &item.kind)
        {
            return;
        }
        self.line("");
    }

    /// Writes a block of lines that are already laid out.
    pub(super) fn lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.begin();
        for line in lines {
            self.line(line);
        }
        self.gap = true;
    }

    /// Writes a block of text, wrapped.
    pub(super) fn inline(&mut self, inline: &Inline) {
        self.begin();
        let mut shown = String::new();
        for part in inline.lines(self.room()) {
            shown.clear();
            inline.write(part, self.style.color, &mut shown);
            self.line(&shown);
        }
        self.gap = true;
    }

    fn line(&mut self, shown: &str) {
        let dim = Look::new().dimmed();
        // Spaces wait for something to stand after them.
        let mut spaces = 0;
        for container in &mut self.open {
            let mark = match (&container.kind, container.marker.take()) {
                (Kind::Quote, _) if container.indent > 0 => Some((QUOTE.into(), dim)),
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
