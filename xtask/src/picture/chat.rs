//! Draws the chat in a terminal, from a real run with a mock provider.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use pty_process::Size;

use super::svg::render_svg;
use crate::process::{built_path, workspace};

const ROWS: NonZeroU16 = NonZeroU16::new(34).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(92).unwrap();
/// What the line editor writes when it starts reading a line.
const PROMPT: &[u8] = b"\x1b[?2004h";
const PROMPT_TIMEOUT: Duration = Duration::from_secs(20);

/// The lines typed.
const TYPED_LINES: &[&str] = &[
    "Let's limit requests to 100 a minute per user.",
    "/pin Redis listens on port 6380",
    "/tasks",
];

const SCRIPT: &str = r#"[
  {"said": [{"text": "A **token bucket** in Redis does it:\n\n```rust\nfn allow(user: &str) -> bool {\n    bucket(user).take(1) // 100 a minute\n}\n```\n\n- one counter a user, refilled as time goes by\n- bursts pass, floods do not\n"}],
   "usage": {"input": 412, "output": 96}},
  {"said": [{"text": "request rate limiter"}], "usage": {"input": 120, "output": 4}}
]"#;

pub(super) fn draw() -> Result<()> {
    let home = workspace().join("target/picture-chat");
    // Start fresh, whatever an earlier run left.
    let _ = std::fs::remove_dir_all(&home);
    let work = home.join("shop");
    std::fs::create_dir_all(&work)?;
    let script = home.join("script.json");
    std::fs::write(&script, SCRIPT)?;
    let mut model = Command::new(built_path("release", "mock-provider"))
        .arg("--script")
        .arg(&script)
        .stdout(Stdio::piped())
        .spawn()
        .context("the mock provider could not be started")?;
    let mut address = String::new();
    let out = model
        .stdout
        .take()
        .context("the mock provider has no output")?;
    BufReader::new(out).read_line(&mut address)?;

    let mut command = Command::new(built_path("release", "tl"));
    command
        .args(["--model", "anthropic/claude-sonnet-4-5"])
        .current_dir(&work)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &home)
        .env("THROUGHLINE_HOME", home.join("data"))
        .env("TERM", "xterm-256color")
        .env("TZ", "UTC")
        .env("ANTHROPIC_API_KEY", "of-the-picture")
        .env("ANTHROPIC_BASE_URL", address.trim());
    let screen = capture_screen(command);
    model.kill()?;
    model.wait()?;
    std::fs::write(
        workspace().join("docs/chat.svg"),
        render_svg(screen?.trim_end()),
    )?;
    eprintln!("Wrote docs/chat.svg");
    Ok(())
}

/// Types all lines and returns the resulting screen.
fn capture_screen(command: Command) -> Result<String> {
    let (pty, pts) = pty_process::blocking::open()?;
    pty.resize(Size::new(ROWS.get(), COLUMNS.get()))?;
    let mut child = pty_process::blocking::Command::from(command).spawn(pts)?;
    let mut keys = File::from(OwnedFd::from(pty));
    let mut output = keys.try_clone()?;
    let (show, shown) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while let Ok(count) = output.read(&mut bytes)
            && count > 0
        {
            if show.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut parser = vt100::Parser::new(ROWS, COLUMNS, 0);
    wait_for_prompt(&shown, &mut parser)?;
    for line in TYPED_LINES {
        keys.write_all(line.as_bytes())?;
        keys.write_all(b"\r")?;
        wait_for_prompt(&shown, &mut parser)?;
    }
    let screen = parser.screen();
    let rows = screen.rows_formatted(0, COLUMNS.get());
    let mut text = String::new();
    for row in rows {
        text.push_str(&row);
        text.push('\n');
    }
    child.kill()?;
    child.wait()?;
    Ok(text)
}

fn wait_for_prompt(shown: &Receiver<Vec<u8>>, parser: &mut vt100::Parser) -> Result<()> {
    let mut seen = Vec::new();
    while !seen.windows(PROMPT.len()).any(|bytes| bytes == PROMPT) {
        let bytes = shown
            .recv_timeout(PROMPT_TIMEOUT)
            .context("the chat never showed a prompt")?;
        parser.process(&bytes);
        seen.extend(bytes);
    }
    // The prompt itself follows the sequence that announces it.
    while let Ok(bytes) = shown.recv_timeout(Duration::from_millis(200)) {
        parser.process(&bytes);
    }
    Ok(())
}
