//! Takes screenshots of the web page in a browser, serving a sample shop's sessions.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::process::{self, built_path, cargo, workspace};

/// The screenshots: file, path on the page (`{}` is the session with the most entries), window
/// size, and whether dark.
const SCREENSHOTS: [(&str, &str, &str, bool); 3] = [
    ("page-sessions.png", "/", "1200,700", false),
    ("page-chat.png", "{}?before=9999", "1200,800", false),
    ("page-status.png", "{}/status", "1200,860", true),
];

/// Kills a child process on drop.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn draw() -> Result<()> {
    crate::browser::ensure_installed()?;
    process::run(cargo().args(["build", "-p", "throughline-server", "--example", "page"]))?;
    let mut server = Command::new(built_path("debug", "examples/page"))
        .arg("127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn()
        .context("the example could not be started")?;
    let out = server.stdout.take().context("the example has no output")?;
    let _server = ChildGuard(server);
    let mut session = String::new();
    BufReader::new(out).read_line(&mut session)?;
    let session = session.trim();
    let (start, _) = session
        .split_once("/s/")
        .context("the example printed no address")?;
    for (file, place, size, dark) in SCREENSHOTS {
        let url = match place.strip_prefix("{}") {
            Some(rest) => format!("{session}{rest}"),
            None => format!("{start}{place}"),
        };
        let picture = workspace().join("docs").join(file);
        let mut chromium = Command::new("chromium");
        chromium
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
            ])
            .args(["--no-proxy-server", "--virtual-time-budget=4000"])
            .arg(format!("--window-size={size}"))
            .arg(format!("--screenshot={}", picture.display()));
        if dark {
            chromium.arg("--blink-settings=preferredColorScheme=0");
        }
        process::run(chromium.arg(url))?;
        eprintln!("Wrote docs/{file}");
    }
    Ok(())
}
