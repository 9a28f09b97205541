//! Terminal output: colors, widths, tables, progress bars and paging.
//!
//! Data goes to stdout, status messages to stderr. The texts come from the callers.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::markdown::{sanitize, wrap_plain};

/// When to use color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl std::str::FromStr for Color {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            other => Err(format!("{other:?} is not auto, always or never")),
        }
    }
}

/// Which end of a long text the pager shows first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageStart {
    /// Its beginning.
    Top,
    /// Its end.
    End,
}

/// The output streams and their capabilities.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    /// Whether data is printed as JSON.
    pub(crate) json: bool,
    /// Width in columns.
    pub(crate) width: usize,
    /// The program that pages long output.
    pub(crate) pager: Option<String>,
    /// Height in rows, if the terminal supports redrawing.
    pub(crate) height: Option<usize>,
    color_out: bool,
    color_err: bool,
}

impl Ui {
    pub(crate) fn new(json: bool, color: Color, no_color: bool, pager: Option<String>) -> Self {
        let decide = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color,
        };
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self {
            json,
            width: width.clamp(40, 200),
            pager,
            height: None,
            color_out: decide(io::stdout().is_terminal()),
            color_err: decide(io::stderr().is_terminal()),
        }
    }

    /// Returns whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Enables redrawing on a terminal that supports it.
    pub(crate) fn with_redraw(mut self) -> Self {
        let size = terminal_size::terminal_size().filter(|_| self.is_terminal());
        self.height = size.map(|(_, height)| usize::from(height.0));
        self
    }

    /// Returns whether stdout is colored.
    pub(crate) fn color(&self) -> bool {
        self.color_out
    }

    /// Prints data.
    pub(crate) fn data(&self, line: impl Display) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }

    /// Prints data as one line of JSON.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, value)?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Prints data as indented JSON.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value)?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Prints a status message to stderr.
    pub(crate) fn status(&self, text: impl Display) {
        // A status message that cannot be printed is not an error.
        let _ = writeln!(io::stderr(), "{}", self.wrap_status(&text.to_string()));
    }

    /// Prints a warning to stderr.
    pub(crate) fn warn(&self, text: impl Display) {
        let style = AnsiColor::Yellow.on_default().bold();
        self.print_labelled(style, "warning:", &text.to_string());
    }

    /// Prints an error and its hint to stderr.
    pub(crate) fn error(&self, message: &str, hint: Option<&str>) {
        let style = AnsiColor::Red.on_default().bold();
        self.print_labelled(style, "error:", &sanitize(message));
        if let Some(hint) = hint {
            let style = AnsiColor::Cyan.on_default().bold();
            self.print_labelled(style, " hint:", &sanitize(hint));
        }
    }

    fn print_labelled(&self, style: Style, label: &str, text: &str) {
        let whole = format!("{label} {text}");
        let whole = self.wrap_status(&whole);
        let rest = whole.strip_prefix(label).unwrap_or(&whole);
        self.status(format_args!("{}{rest}", self.paint_err(style, label)));
    }

    fn paint_err(&self, style: Style, text: &str) -> String {
        paint(self.color_err, style, text)
    }

    /// Wraps a status message to the terminal's width. Styled text is already laid out.
    pub(crate) fn wrap_status<'t>(&self, text: &'t str) -> Cow<'t, str> {
        use unicode_width::UnicodeWidthStr;
        let fits = text.lines().all(|line| line.width() <= self.width);
        if fits || text.contains('\x1b') || !io::stderr().is_terminal() {
            return text.into();
        }
        wrap_plain(text, self.width)
            .trim_end_matches('\n')
            .to_owned()
            .into()
    }

    /// Styles text, if stdout is colored.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        paint(self.color_out, style, text)
    }

    /// Dims text for stdout.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// Dims text for stderr.
    pub(crate) fn dim_err(&self, text: &str) -> String {
        self.paint_err(Style::new().dimmed(), &self.wrap_status(text))
    }

    /// Makes text bold for stdout.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Returns a progress bar on stderr, hidden without a terminal.
    pub(crate) fn progress(&self, what: &'static str, unit: &str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(
            None,
            if io::stderr().is_terminal() {
                ProgressDrawTarget::stderr_with_hz(10)
            } else {
                ProgressDrawTarget::hidden()
            },
        );
        let template =
            format!("{{msg}} {{wide_bar}} {{human_pos}}/{{human_len}} {unit} {{elapsed}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.with_message(what)
    }

    /// Returns a spinner on stderr, hidden without a terminal.
    pub(crate) fn spinner(&self, what: &'static str) -> ProgressBar {
        if !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner().with_message(what);
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    }

    /// Draws `part` of `whole` as a bar of this many columns.
    pub(crate) fn bar(&self, part: u64, whole: u64, columns: usize) -> String {
        const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        if whole == 0 {
            return " ".repeat(columns);
        }
        let units = u128::from(part.min(whole)) * (columns as u128) * 8 / u128::from(whole);
        let units = usize::try_from(units).unwrap_or(columns * 8);
        let mut bar = "█".repeat(units / 8);
        if units % 8 > 0 {
            bar.push(EIGHTHS[units % 8]);
        }
        let used = bar.chars().count();
        bar.extend(std::iter::repeat_n(' ', columns.saturating_sub(used)));
        bar
    }

    /// Prints text, through the pager if it is longer than the screen.
    pub(crate) fn page(&self, text: &str) -> io::Result<()> {
        self.page_from(text, PageStart::Top)
    }

    /// Prints text; where it needs the pager, shows its end or its beginning first.
    pub(crate) fn page_from(&self, text: &str, start: PageStart) -> io::Result<()> {
        let trimmed;
        let text = if self.is_terminal() {
            trimmed = format!("{}\n", text.trim_end());
            &trimmed
        } else {
            text
        };
        let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        let long = text.lines().count() >= height;
        if let Some(pager) = self.pager.as_ref().filter(|_| long && self.is_terminal())
            && run_pager(pager, text, start)
        {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// Shows text in a pager; returns false if it cannot be started.
fn run_pager(pager: &str, text: &str, start: PageStart) -> bool {
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else {
        return false;
    };
    let at_end = start == PageStart::End && program.ends_with("less");
    let child = std::process::Command::new(program)
        .args(words)
        .args(at_end.then_some("+G"))
        .env("LESS", "FRX")
        .env("LESSCHARSET", "utf-8")
        .stdin(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    if let Some(mut stdin) = child.stdin.take() {
        // The user may quit the pager early.
        let _ = stdin.write_all(text.as_bytes());
    }
    child.wait().is_ok()
}

fn paint(color: bool, style: Style, text: &str) -> String {
    if color {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// A table without borders that fits the screen.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Columns aligned to the right.
    right_aligned: Vec<usize>,
    /// The column that shrinks if the table is too wide.
    elastic: usize,
}

impl Table {
    pub(crate) fn new(head: &[&'static str], right: &[usize], elastic: usize) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
            right_aligned: right.to_vec(),
            elastic,
        }
    }

    pub(crate) fn push_row(&mut self, cells: Vec<String>) {
        let cells = cells.into_iter().map(|cell| sanitize(&cell).into_owned());
        self.rows.push(cells.collect());
    }

    pub(crate) fn render(&self, ui: &Ui) -> String {
        use unicode_width::UnicodeWidthStr;
        // Empty columns are hidden.
        let shown: Vec<usize> = (0..self.head.len())
            .filter(|column| self.rows.iter().any(|row| !row[*column].is_empty()))
            .collect();
        let mut widths: Vec<usize> = shown
            .iter()
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[*column].width());
                cells.max().unwrap_or(0).max(self.head[*column].width())
            })
            .collect();
        let gaps = 2 * shown.len().saturating_sub(1);
        let total: usize = widths.iter().sum::<usize>() + gaps;
        if let Some(elastic) = shown.iter().position(|column| *column == self.elastic) {
            let excess = total.saturating_sub(ui.width);
            let least = widths[elastic].min(8);
            widths[elastic] = widths[elastic].saturating_sub(excess).max(least);
        }
        let line = |cells: &dyn Fn(usize) -> String| {
            let mut line = String::new();
            for (position, column) in shown.iter().enumerate() {
                if position > 0 {
                    line.push_str("  ");
                }
                let cell = truncate(&cells(*column), widths[position]);
                let space = " ".repeat(widths[position].saturating_sub(cell.width()));
                if self.right_aligned.contains(column) {
                    line.extend([space, cell]);
                } else {
                    line.extend([cell, space]);
                }
            }
            line.trim_end().to_owned()
        };
        let mut text = ui.dim(&line(&|column| self.head[column].to_owned()));
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(&|column| row[column].clone()));
            text.push('\n');
        }
        text
    }
}

/// Truncates a text to a number of columns.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if used + width + 1 > columns {
            break;
        }
        used += width;
        cut.push(c);
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_columns_and_not_by_bytes() {
        assert_eq!(truncate("hello", 5), "hello");
        assert_eq!(truncate("hello!", 5), "hell…");
        assert_eq!(truncate("東京都庁", 5), "東京…");
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let ui = Ui::new(false, Color::Never, true, None);
        assert_eq!(ui.bar(1, 2, 4), "██  ");
        assert_eq!(ui.bar(0, 2, 4), "    ");
        assert_eq!(ui.bar(9, 2, 4), "████");
        assert_eq!(ui.bar(1, 0, 4), "    ");
    }
}
