//! Syntax-highlights code with the terminal's own palette, which suits its background.
//!
//! Invariant: colors are added and no character is changed.

use anstyle::{AnsiColor, Style as Look};
use throughline_highlight::{Highlighter, TokenKind};

use super::inline::paint;

/// Writes the lines of one block of code.
#[derive(Debug, Default)]
pub(super) struct ColoredCode {
    /// `None` without color.
    highlighter: Option<Highlighter>,
}

impl ColoredCode {
    /// Creates a writer for a block with the info string of its fence.
    pub(super) fn new(info: &str, color: bool) -> Self {
        Self {
            highlighter: color.then(|| Highlighter::new(info)),
        }
    }

    /// Writes the next line, which is sanitized and has no line ending.
    pub(super) fn line(&mut self, line: &str, out: &mut String) {
        let Some(highlighter) = &mut self.highlighter else {
            out.push_str(line);
            return;
        };
        for (piece, kind) in highlighter.highlight_line(line) {
            paint(piece, style_for(kind), true, out);
        }
    }
}

fn style_for(kind: TokenKind) -> Look {
    let color = match kind {
        TokenKind::Plain => return Look::new(),
        TokenKind::Comment => return Look::new().dimmed(),
        TokenKind::Heading => return Look::new().bold(),
        TokenKind::Keyword => AnsiColor::Magenta,
        TokenKind::StringLiteral | TokenKind::Added => AnsiColor::Green,
        TokenKind::Number | TokenKind::Constant => AnsiColor::Cyan,
        TokenKind::Function | TokenKind::Key => AnsiColor::Blue,
        TokenKind::Type => AnsiColor::Yellow,
        TokenKind::Removed => AnsiColor::Red,
    };
    color.on_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(color: bool, lines: &[&str]) -> Vec<String> {
        let mut code = ColoredCode::new("rust", color);
        let show = |line: &&str| {
            let mut out = String::new();
            code.line(line, &mut out);
            out
        };
        lines.iter().map(show).collect()
    }

    #[test]
    fn the_colors_are_the_terminals_own() {
        assert_eq!(
            shown(true, &["let a = \"b\"; // c", "fn d(e: F) -> u8 { 1 }"]),
            [
                "\x1b[35mlet\x1b[0m a = \x1b[32m\"b\"\x1b[0m; \x1b[2m// c\x1b[0m",
                "\x1b[35mfn\x1b[0m \x1b[34md\x1b[0m(e: \x1b[33mF\x1b[0m) -> \x1b[33mu8\x1b[0m { \x1b[36m1\x1b[0m }",
            ]
        );
    }

    #[test]
    fn without_color_code_is_as_it_is() {
        assert_eq!(shown(false, &["let a = 1;"]), ["let a = 1;"]);
    }
}
