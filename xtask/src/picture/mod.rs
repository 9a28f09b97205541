//! `cargo xtask picture`: draws the README's pictures from real runs.

mod chat;
mod page;
mod svg;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process::{self, built_path, cargo, workspace};
use svg::render_svg;

/// The commands whose output is shown; those that start with `#` are run but not shown.
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

/// Draw the README's pictures
#[derive(clap::Args, Debug)]
pub(crate) struct PictureArgs {
    /// Draw only this: the terminal, or the page in a browser
    #[arg(value_parser = ["terminal", "page"])]
    what: Option<String>,
}

pub(crate) fn run(args: &PictureArgs) -> Result<()> {
    if args.what.as_deref() != Some("page") {
        draw_terminal()?;
    }
    if args.what.as_deref() != Some("terminal") {
        page::draw()?;
    }
    Ok(())
}

fn draw_terminal() -> Result<()> {
    let packages = ["-p", "throughline-cli", "-p", "throughline-mock-provider"];
    process::run(cargo().args(["build", "--release"]).args(packages))?;
    chat::draw()?;
    let home = workspace().join("target/picture");
    // Start fresh, whatever an earlier run left.
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("demo.jsonl"), DEMO)?;
    let mut screen = String::new();
    for (line, stdin) in SCRIPT {
        let hidden = line.starts_with('#');
        let output = run_tl(&home, line.trim_start_matches("# "), stdin)?;
        if !hidden {
            let _ = write!(screen, "\u{1b}[1;32m$\u{1b}[0m tl {line}\n{output}\n");
        }
    }
    let picture = render_svg(screen.trim_end());
    std::fs::write(workspace().join("docs/tl.svg"), picture)?;
    eprintln!("Wrote docs/tl.svg");
    Ok(())
}

fn run_tl(home: &Path, line: &str, stdin: &str) -> Result<String> {
    let mut child = Command::new(built_path("release", "tl"))
        .args(line.split(' '))
        .args(["--color", "always"])
        .current_dir(home)
        .env("THROUGHLINE_HOME", home)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("tl could not be started")?;
    if let Some(mut pipe) = child.stdin.take() {
        std::io::Write::write_all(&mut pipe, stdin.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok(String::from_utf8(output.stdout)?)
}
