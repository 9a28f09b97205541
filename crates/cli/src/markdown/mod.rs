//! Renders Markdown as text for a terminal.
//!
//! A text is rendered block by block, so that a model's answer can be shown while it is still
//! streaming. A reference link therefore resolves only if it was defined earlier, so
//! definitions are shown rather than dropped.
//!
//! Invariants: the output does not depend on how the text is split into chunks, and no control
//! character of the text reaches the terminal.

mod block_renderer;
mod blocks;
mod color;
mod container;
mod html;
mod inline;
mod line;
mod links;
mod nested_writer;
mod sanitize;
mod table;
mod wrap;

use anstyle::Style as Look;

use block_renderer::BlockRenderer;
use blocks::{BlockScanner, LineRole};
use color::ColoredCode;
use inline::paint;
use links::LinkDefinitions;

pub(crate) use sanitize::sanitize;

/// Sanitizes plain text and wraps it to `width` columns.
pub(crate) fn wrap_plain(text: &str, width: usize) -> String {
    let text = text.replace("\r\n", "\n");
    let text = sanitize(&text);
    let mut plain = String::with_capacity(text.len());
    for line in wrap::wrap_lines(text.trim_end_matches('\n'), width) {
        plain.push_str(&text[line]);
        plain.push('\n');
    }
    plain
}

/// Rendering options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Columns of the terminal; at least 20 are assumed.
    pub(crate) width: usize,
    /// Whether to style with escape sequences.
    pub(crate) color: bool,
}

impl Style {
    /// Returns the style with the width clamped to a usable range.
    fn bounded(self) -> Self {
        Style {
            width: self.width.clamp(20, 1000),
            ..self
        }
    }
}

/// Renders a whole text. Ends with one newline, unless there is nothing to show.
pub(crate) fn render(text: &str, style: &Style) -> String {
    let mut stream = StreamRenderer::new(*style);
    let mut out = stream.push(text);
    out.push_str(&stream.finish());
    out
}

/// Maximum size of an incomplete block that is drawn as a draft.
const MAX_DRAFT_BYTES: usize = 8 * 1024;

/// Renders a text that arrives in chunks.
///
/// The concatenated results of [`push`](Self::push) and [`finish`](Self::finish) equal
/// [`render`] of the whole text.
#[derive(Debug)]
pub(crate) struct StreamRenderer {
    style: Style,
    blocks: BlockScanner,
    links: LinkDefinitions,
    /// The incomplete line.
    line: String,
    /// The incomplete block.
    block: String,
    /// Whether a blank line is needed before the next output.
    needs_blank_line: bool,
    /// Whether the open block has produced output yet.
    has_output: bool,
    /// Whether the open block nests too deep to be parsed as Markdown.
    too_deep: bool,
    /// Blank lines of code, held back until code follows them.
    pending_blank_lines: usize,
    /// The highlighter of top-level code.
    code: ColoredCode,
}

impl StreamRenderer {
    /// Creates a renderer for an empty text.
    pub(crate) fn new(style: Style) -> Self {
        StreamRenderer {
            style: style.bounded(),
            blocks: BlockScanner::new(),
            links: LinkDefinitions::default(),
            line: String::new(),
            block: String::new(),
            needs_blank_line: false,
            has_output: false,
            too_deep: false,
            pending_blank_lines: 0,
            code: ColoredCode::default(),
        }
    }

    /// Adds a chunk; returns the output that is now complete.
    pub(crate) fn push(&mut self, chunk: &str) -> String {
        let mut out = String::new();
        let mut rest = chunk;
        while let Some((end, after)) = rest.split_once('\n') {
            if self.line.is_empty() {
                self.take_line(end, &mut out);
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.push_str(end);
                self.take_line(&line, &mut out);
            }
            rest = after;
        }
        self.line.push_str(rest);
        out
    }

    /// Renders the open block so far. This is provisional, because the rest may change the kind
    /// of block. Code is written line by line and needs no draft.
    pub(crate) fn draft(&self) -> String {
        let open = format!("{}{}", self.block, self.line);
        let opens_fence = self.block.is_empty() && open.trim_start().starts_with(['`', '~']);
        if self.too_deep || self.blocks.is_code() || opens_fence || open.len() > MAX_DRAFT_BYTES {
            return String::new();
        }
        let mut page = BlockRenderer::new(self.style);
        page.render_markdown(&open, &mut self.links.clone());
        let shown = page.finish();
        let gap = if self.needs_blank_line && !shown.is_empty() {
            "\n"
        } else {
            ""
        };
        format!("{gap}{shown}")
    }

    /// Ends the text; returns the remaining output.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut out);
        }
        self.end_block(&mut out);
        self.blocks = BlockScanner::new();
        out
    }

    fn take_line(&mut self, line: &str, out: &mut String) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        // Only the parser would treat a lone carriage return as a line ending.
        let shown = line.contains('\r').then(|| line.replace('\r', "␍"));
        let line = shown.as_deref().unwrap_or(line);
        match self.blocks.classify(line) {
            LineRole::Block { begins, ends } => {
                if begins {
                    self.end_block(out);
                }
                self.too_deep |= self.blocks.is_too_deep();
                self.block.push_str(line);
                self.block.push('\n');
                if ends {
                    self.end_block(out);
                }
            }
            LineRole::FenceOpen(info) => {
                self.end_block(out);
                self.code = ColoredCode::new(info, self.style.color);
                if !info.is_empty() {
                    self.begin_line(out);
                    let dim = Look::new().dimmed();
                    paint(&block_renderer::to_label(info), dim, self.style.color, out);
                    out.push('\n');
                }
            }
            LineRole::Code("") => self.pending_blank_lines += 1,
            LineRole::Code(code) => {
                self.begin_line(out);
                self.code.line(&sanitize(code), out);
                out.push('\n');
            }
            LineRole::FenceClose => self.end_block(out),
        }
    }

    /// Renders the completed block and resets the state.
    fn end_block(&mut self, out: &mut String) {
        let block = std::mem::take(&mut self.block);
        let mut page = BlockRenderer::new(self.style);
        if self.too_deep {
            page.render_raw(&block);
        } else {
            page.render_markdown(&block, &mut self.links);
        }
        let shown = page.finish();
        if !shown.is_empty() {
            self.begin_output(out);
            out.push_str(&shown);
        }
        self.needs_blank_line |= self.has_output;
        (self.has_output, self.too_deep, self.pending_blank_lines) = (false, false, 0);
    }

    /// Begins a line of code outside every container, which is written at once.
    fn begin_line(&mut self, out: &mut String) {
        self.begin_output(out);
        out.extend(std::iter::repeat_n(
            '\n',
            std::mem::take(&mut self.pending_blank_lines),
        ));
        out.push_str(block_renderer::CODE_INDENT);
    }

    fn begin_output(&mut self, out: &mut String) {
        if std::mem::take(&mut self.needs_blank_line) {
            out.push('\n');
        }
        self.has_output = true;
    }
}

#[cfg(test)]
mod tests;
