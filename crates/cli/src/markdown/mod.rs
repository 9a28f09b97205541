//! Markdown, as text for a terminal.
//!
//! A text is rendered block by block, so that what a model writes can be shown
//! while it is still being written. The price is small: a link by reference
//! finds its address only if that was defined earlier, so definitions are shown
//! rather than dropped.
//!
//! Invariants: however a text is cut into chunks, it comes out the same; and no
//! control character of the text reaches the terminal.

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

/// Plain text made safe and broken into lines of at most `width` columns.
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

/// How to render.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Columns of the terminal; fewer than 20 are taken for 20.
    pub(crate) width: usize,
    /// Whether to style with escape sequences.
    pub(crate) color: bool,
}

impl Style {
    /// The style with a width that can be worked with: room for a few words,
    /// and a rule across it that is no burden.
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

/// More than this of one block is not drawn before it is complete.
const MAX_DRAFT_BYTES: usize = 8 * 1024;

/// Renders a text that arrives in chunks.
///
/// What [`push`](Self::push) and [`finish`](Self::finish) return adds up to what
/// [`render`] makes of the whole text.
#[derive(Debug)]
pub(crate) struct StreamRenderer {
    style: Style,
    blocks: BlockScanner,
    links: LinkDefinitions,
    /// The line still without an end.
    line: String,
    /// The block still without an end.
    block: String,
    /// Whether a blank line is due before what comes next.
    needs_blank_line: bool,
    /// Whether the open block has shown anything yet.
    has_output: bool,
    /// Whether the open block nests too deep to be read as Markdown.
    too_deep: bool,
    /// Blank lines of code, held back until code follows them.
    pending_blank_lines: usize,
    /// What colors the code outside every container.
    code: ColoredCode,
}

impl StreamRenderer {
    /// A text of which nothing has arrived.
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

    /// Takes more of the text; returns what is complete by now.
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

    /// What the block that is still open looks like so far: nothing that counts, as the
    /// rest of it may make it another. Code comes line by line and needs no draft.
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

    /// Takes the text to be at its end; returns what was still open.
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
        // A lone carriage return would be a line ending to the parser alone.
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

    /// Renders the block that is complete, and begins anew.
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

    /// Begins a line of code outside every container, which need not wait for the
    /// rest.
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
