//! Renders a terminal screen as an SVG picture.

use std::fmt::Write as _;

/// The style of the following text.
#[derive(Default)]
struct TextStyle {
    effects: Vec<&'static str>,
    color: Option<u8>,
}

impl TextStyle {
    fn apply(&mut self, codes: &str) {
        for code in codes.split(';') {
            match code.parse().unwrap_or(0_u8) {
                0 => *self = Self::default(),
                1 => self.effects.push(r#" font-weight="bold""#),
                2 => self.effects.push(r#" opacity="0.6""#),
                3 => self.effects.push(r#" font-style="italic""#),
                4 => self.effects.push(r#" text-decoration="underline""#),
                color @ (30..=37 | 90..=97) => self.color = Some(color % 10),
                _ => {}
            }
        }
    }

    fn attributes(&self) -> String {
        const COLORS: [&str; 8] = [
            "#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3",
        ];
        let color = self
            .color
            .map_or("#e6edf3", |color| COLORS[usize::from(color % 8)]);
        format!(r#"fill="{color}"{}"#, self.effects.concat())
    }
}

/// Renders a terminal screen with escape sequences as an SVG picture.
pub(super) fn render_svg(screen: &str) -> String {
    const LINE: usize = 20;
    const EDGE: usize = 20;
    let lines: Vec<_> = screen.lines().collect();
    let (width, height) = (800, lines.len() * LINE + 2 * EDGE);
    let mut text = String::new();
    for (row, line) in lines.iter().enumerate() {
        let y = EDGE + (row + 1) * LINE - 5;
        let _ = write!(text, r#"<text x="{EDGE}" y="{y}" xml:space="preserve">"#);
        let mut pen = TextStyle::default();
        for (index, part) in line.split("\u{1b}[").enumerate() {
            let shown = match part.split_once('m') {
                Some((codes, rest)) if index > 0 => {
                    pen.apply(codes);
                    rest
                }
                _ => part,
            };
            if !shown.is_empty() {
                let escaped = shown.replace('&', "&amp;").replace('<', "&lt;");
                let _ = write!(text, "<tspan {}>{escaped}</tspan>", pen.attributes());
            }
        }
        text.push_str("</text>\n");
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="tl in a terminal">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
{text}</g>
</svg>
"##
    )
}
