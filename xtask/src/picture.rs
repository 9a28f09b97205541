//! `cargo xtask picture`: pictures of the program for the README, made from a real run.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::run::{self, built, cargo, workspace};

/// The commands whose output is shown; lines that start with `#` are run and not shown.
const SCRIPT: &[(&str, &str)] = &[
    ("# import demo.jsonl", ""),
    ("sessions", ""),
    ("show rate-limiter", ""),
    ("fork rate-limiter --at 2 --name sliding-window", ""),
    (
        "# append sliding-window",
        "What if we used a sliding window instead?",
    ),
    ("tree rate-limiter", ""),
];

const DEMO: &str = r#"{"session":"s-billing","name":"billing-export","role":"user","content":"Export invoices as CSV","at":"2026-11-13T09:00:00Z"}
{"session":"s-billing","role":"assistant","content":"Done: `src/export.rs`.","at":"2026-11-13T09:00:09Z","usage":{"input":5200,"output":410}}
{"session":"s-login","name":"login-bug","role":"user","content":"Login fails after an hour","at":"2026-11-14T16:20:00Z"}
{"session":"s-login","role":"assistant","content":"The token lives 60 minutes; refresh it.","at":"2026-11-14T16:20:11Z","usage":{"input":8100,"output":95}}
{"session":"s-limit","name":"rate-limiter","role":"user","content":"Let's limit requests to 100 a minute per user.","at":"2026-11-15T10:00:00Z"}
{"session":"s-limit","role":"assistant","content":"Two ways:\n\n- **token bucket**: smooth, one counter in Redis\n- **sliding window**: exact, a sorted set per user\n\n```rust\nlimiter.take(user, 1)?;\n```","at":"2026-11-15T10:00:07Z","model":"example-1","usage":{"input":1240,"output":180}}
{"session":"s-limit","role":"user","content":"Token bucket, please.","at":"2026-11-15T10:01:00Z"}
"#;

pub(crate) fn run() -> Result<()> {
    run::run(cargo().args(["build", "--release", "-p", "throughline-cli"]))?;
    let home = workspace().join("target/picture");
    // A picture of a fresh start, whatever an earlier one left.
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("demo.jsonl"), DEMO)?;
    let mut screen = String::new();
    for (line, stdin) in SCRIPT {
        let hidden = line.starts_with('#');
        let output = tl(&home, line.trim_start_matches("# "), stdin)?;
        if !hidden {
            let _ = write!(screen, "\u{1b}[1;32m$\u{1b}[0m tl {line}\n{output}\n");
        }
    }
    let picture = svg(screen.trim_end());
    std::fs::write(workspace().join("docs/tl.svg"), picture)?;
    eprintln!("Wrote docs/tl.svg");
    Ok(())
}

fn tl(home: &Path, line: &str, stdin: &str) -> Result<String> {
    let mut child = Command::new(built("release", "tl"))
        .args(line.split(' '))
        .args(["--color", "always"])
        .current_dir(home)
        .env("THROUGHLINE_HOME", home)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("tl cannot be run")?;
    if let Some(mut pipe) = child.stdin.take() {
        std::io::Write::write_all(&mut pipe, stdin.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// How the text to come is drawn.
#[derive(Default)]
struct Pen {
    effects: Vec<&'static str>,
    color: Option<u8>,
}

impl Pen {
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

/// A terminal's screen as a picture.
fn svg(screen: &str) -> String {
    const LINE: usize = 20;
    const EDGE: usize = 20;
    let lines: Vec<_> = screen.lines().collect();
    let (width, height) = (800, lines.len() * LINE + 2 * EDGE);
    let mut text = String::new();
    for (row, line) in lines.iter().enumerate() {
        let y = EDGE + (row + 1) * LINE - 5;
        let _ = write!(text, r#"<text x="{EDGE}" y="{y}" xml:space="preserve">"#);
        let mut pen = Pen::default();
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
