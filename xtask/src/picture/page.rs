//! The page, as it looks in a browser: a small shop's sessions, really served.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::process::{self, built_path, cargo, workspace};

/// What is drawn: a file, where on the page (`{}` is the session that has most in it), the
/// size of the window, and whether it is dark.
const SCREENSHOTS: [(&str, &str, &str, bool); 3] = [
    ("page-sessions.png", "/", "1200,700", false),
    ("page-chat.png", "{}?before=9999", "1200,800", false),
    ("page-status.png", "{}/status", "1200,860", true),
];

/// A program that ends with this.
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
        .context("the example cannot be run")?;
    let out = server.stdout.take().context("the example says nothing")?;
    let _server = ChildGuard(server);
    let mut session = String::new();
    BufReader::new(out).read_line(&mut session)?;
    let session = session.trim();
    let (start, _) = session
        .split_once("/s/")
        .context("the example said no address")?;
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
