//! Renders one block of Markdown into lines.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style as Look};
use pulldown_cmark::{BrokenLink, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::Style;
use super::color::ColoredCode;
use super::inline::{StyledText, paint};
use super::links::LinkDefinitions;
use super::nested_writer::NestedWriter;
use super::sanitize::sanitize;
use super::table::Table;

pub(super) const CODE_INDENT: &str = "  ";

/// Converts a name from the text to a single line.
pub(super) fn to_label(text: &str) -> Cow<'_, str> {
    let text = sanitize(text);
    if text.contains(['\n', '\t']) {
        text.replace(['\n', '\t'], " ").into()
    } else {
        text
    }
}

/// Renders the parser's events of a block into lines.
pub(super) struct BlockRenderer {
    nest: NestedWriter,
    color: bool,
    inline: StyledText,
    /// The stack of active styles, each combined with those around it.
    looks: Vec<Look>,
    /// The start of the text and the address of each open link or image.
    link_targets: Vec<(usize, String)>,
    table: Option<Table>,
    code: Option<(String, String)>,
}

impl BlockRenderer {
    pub(super) fn new(style: Style) -> Self {
        BlockRenderer {
            nest: NestedWriter::new(style),
            color: style.color,
            inline: StyledText::default(),
            looks: Vec::new(),
            link_targets: Vec::new(),
            table: None,
            code: None,
        }
    }

    /// Renders a block of Markdown and records the links it defines.
    pub(super) fn render_markdown(&mut self, text: &str, links: &mut LinkDefinitions) {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS;
        let known = |link: BrokenLink| Some((links.find(&link.reference)?.into(), "".into()));
        let parser = Parser::new_with_broken_link_callback(text, options, Some(known));
        let mut defined: Vec<_> = parser
            .reference_definitions()
            .iter()
            .map(|(label, link)| (link.span.start, label.to_owned(), link.dest.to_string()))
            .collect();
        for event in parser {
            self.handle_event(event);
        }
        self.end_inline();
        defined.sort();
        for (_, label, url) in defined {
            let line_end = if self.inline.is_blank() { "" } else { "\n" };
            self.inline
                .push(&format!("{line_end}[{label}]: {url}"), Look::new().dimmed());
            links.define(&label, &url);
        }
        self.end_inline();
    }

    /// Writes a block as plain text.
    pub(super) fn render_raw(&mut self, text: &str) {
        self.push(text.trim_end_matches('\n'));
        self.end_inline();
    }

    pub(super) fn finish(self) -> String {
        self.nest.finish()
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text),
            },
            Event::Code(code) => {
                let look = self.current_style().fg_color(Some(AnsiColor::Cyan.into()));
                self.push_source_mark("`");
                self.inline.push(&code, look);
                self.push_source_mark("`");
            }
            Event::Html(html) | Event::InlineHtml(html) => self.push(&html),
            Event::FootnoteReference(name) => self.push(&format!("[^{name}]")),
            Event::SoftBreak => self.push(" "),
            Event::HardBreak => self.push("\n"),
            Event::Rule => {
                let mut rule = String::new();
                let line = "─".repeat(self.nest.available_columns());
                paint(&line, Look::new().dimmed(), self.color, &mut rule);
                self.nest.write_lines([rule.as_str()]);
            }
            Event::TaskListMarker(done) => self.push(if done { "[x] " } else { "[ ] " }),
            // Not enabled in the parser; shown verbatim in case it sends them.
            Event::InlineMath(math) | Event::DisplayMath(math) => self.push(&math),
        }
    }

    fn start(&mut self, tag: Tag) {
        match tag {
            Tag::Emphasis => self.looks.push(self.current_style().italic()),
            Tag::Strong | Tag::TableHead => self.looks.push(self.current_style().bold()),
            Tag::Strikethrough => {
                self.push_source_mark("~~");
                self.looks.push(self.current_style().strikethrough());
            }
            Tag::Link { dest_url, .. } => {
                self.looks.push(self.current_style().underline());
                self.link_targets
                    .push((self.inline.text().len(), dest_url.into_string()));
            }
            Tag::Image { dest_url, .. } => {
                self.push("[image: ");
                self.link_targets
                    .push((self.inline.text().len(), dest_url.into_string()));
            }
            Tag::TableRow | Tag::TableCell | Tag::Superscript | Tag::Subscript => {}
            tag => {
                // The text of a tight list item ends where the next block begins.
                self.end_inline();
                self.start_block(tag);
            }
        }
    }

    fn start_block(&mut self, tag: Tag) {
        match tag {
            Tag::Paragraph => self.nest.note_paragraph(),
            Tag::Heading { level, .. } => {
                let level = level as usize;
                let bold = self.current_style().bold();
                self.looks
                    .push(if level == 1 { bold.underline() } else { bold });
                self.push_source_mark(&format!("{} ", "#".repeat(level)));
            }
            Tag::BlockQuote(_) => self.nest.open_quote(),
            Tag::List(number) => self.nest.open_list(number),
            Tag::Item => self.nest.open_item(),
            Tag::FootnoteDefinition(name) => self.nest.open_footnote(&name),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => to_label(info.trim()).into_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::Table(aligned) => self.table = Some(Table::new(aligned)),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong => {
                self.looks.pop();
            }
            TagEnd::Strikethrough => {
                self.looks.pop();
                self.push_source_mark("~~");
            }
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                if let Some((start, url)) = self.link_targets.pop() {
                    let named = self.inline.text().len() > start;
                    self.push(if named { "" } else { &url });
                    self.push("]");
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                self.with_table(|table| table.push_cell(cell));
            }
            TagEnd::TableHead => {
                self.looks.pop();
                self.with_table(Table::end_head);
            }
            TagEnd::TableRow => self.with_table(Table::end_row),
            TagEnd::Superscript | TagEnd::Subscript => {}
            tag => {
                self.end_inline();
                self.end_block(tag);
            }
        }
    }

    fn end_block(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.looks.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.nest.close_container();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.render(self.nest.available_columns(), self.color);
                    self.nest.write_lines(lines.iter().map(String::as_str));
                }
            }
            _ => {}
        }
    }

    /// Appends the address to a link, unless the text already shows it.
    fn end_link(&mut self) {
        self.looks.pop();
        let Some((start, url)) = self.link_targets.pop() else {
            return;
        };
        let text = self.inline.text().get(start..).unwrap_or_default();
        let shown = sanitize(&url);
        if !url.is_empty() && text != shown && Some(text) != shown.strip_prefix("mailto:") {
            self.inline.push(&format!(" ({url})"), Look::new().dimmed());
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        let code = code.trim_end_matches('\n');
        let mut lines = Vec::new();
        if !language.is_empty() {
            let mut line = CODE_INDENT.to_owned();
            paint(&language, Look::new().dimmed(), self.color, &mut line);
            lines.push(line);
        }
        let mut colored = ColoredCode::new(&language, self.color);
        if !code.is_empty() {
            lines.extend(sanitize(code).split('\n').map(|line| {
                let mut shown = String::new();
                if !line.is_empty() {
                    shown.push_str(CODE_INDENT);
                    colored.line(line, &mut shown);
                }
                shown
            }));
        }
        if !lines.is_empty() {
            self.nest.write_lines(lines.iter().map(String::as_str));
        }
    }

    fn end_inline(&mut self) {
        let mut inline = std::mem::take(&mut self.inline);
        inline.trim_end();
        if !inline.is_blank() {
            self.nest.write_text(&inline);
        }
    }

    fn with_table(&mut self, act: impl FnOnce(&mut Table)) {
        if let Some(table) = &mut self.table {
            act(table);
        }
    }

    fn current_style(&self) -> Look {
        self.looks.last().copied().unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.inline.push(text, self.current_style());
    }

    /// Writes a Markdown marker when there is no color to express it.
    fn push_source_mark(&mut self, mark: &str) {
        if !self.color {
            self.push(mark);
        }
    }
}
