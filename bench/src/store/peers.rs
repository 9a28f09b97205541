//! Other session stores, from PyPI: installed here, and driven by a script.
//!
//! The script stays up and is told what to do line by line, so that it can take turns
//! with the others and no start of an interpreter is counted.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::sample;

const SCRIPT: &str = include_str!("peers.py");
const PACKAGES: [&str; 2] = ["openai-agents", "langgraph-checkpoint-sqlite"];

/// Something a peer can be told to do.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub(super) enum Work {
    /// `SQLiteSession.add_items`, a message at a time.
    Session { writers: usize },
    /// `SqliteSaver.put` of a checkpoint with so many messages.
    Saver { messages: u64 },
}

#[derive(Serialize)]
struct Request<'a> {
    #[serde(flatten)]
    work: &'a Work,
    seconds: f64,
    text: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    rate: f64,
}

/// What the script says of itself when it is up.
#[derive(Deserialize)]
struct About {
    about: String,
}

/// The peers, or why they cannot be measured.
pub(super) struct Peers {
    running: Result<RefCell<Running>, String>,
    about: Option<String>,
}

struct Running {
    child: Child,
    // Closed first, which is how the script is told to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peers {
    /// Installs what is not there yet and starts the script.
    pub(super) fn start(venv: &Path, folder: &Path) -> Self {
        match install(venv).and_then(|()| Running::start(venv, folder)) {
            Ok((running, about)) => Self {
                running: Ok(RefCell::new(running)),
                about: Some(about),
            },
            Err(error) => {
                eprintln!("the Python peers cannot be measured: {error:#}");
                Self {
                    running: Err(format!("{error:#}")),
                    about: None,
                }
            }
        }
    }

    pub(super) fn are_there(&self) -> bool {
        self.running.is_ok()
    }

    /// Why they are not there.
    pub(super) fn why_not(&self) -> String {
        self.running.as_ref().err().cloned().unwrap_or_default()
    }

    /// Their versions, and how durable they are as they come.
    pub(super) fn about(&self) -> Option<String> {
        self.about.clone()
    }

    /// How often a second they do it.
    pub(super) fn rate(&self, work: &Work, slice: Duration) -> Result<f64> {
        let running = self
            .running
            .as_ref()
            .map_err(|why| anyhow::anyhow!("{why}"))?;
        let request = Request {
            work,
            seconds: slice.as_secs_f64(),
            text: &sample::text(),
        };
        let answer: Answer = running
            .borrow_mut()
            .ask(&serde_json::to_string(&request)?)?;
        Ok(answer.rate)
    }
}

impl Running {
    fn start(venv: &Path, folder: &Path) -> Result<(Self, String)> {
        let script = folder.join("peers.py");
        fs::write(&script, SCRIPT)?;
        let mut child = Command::new(venv.join("bin/python"))
            .arg(&script)
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting Python")?;
        let requests = child.stdin.take().context("Python has no input")?;
        let answers = child.stdout.take().context("Python has no output")?;
        let mut running = Self {
            child,
            requests: Some(requests),
            answers: BufReader::new(answers),
        };
        let about: About = running.answer()?;
        Ok((running, about.about))
    }

    fn ask<T: for<'de> Deserialize<'de>>(&mut self, request: &str) -> Result<T> {
        let requests = self.requests.as_mut().context("the script has ended")?;
        writeln!(requests, "{request}")?;
        requests.flush()?;
        self.answer()
    }

    fn answer<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the script ended early");
        serde_json::from_str(&line).with_context(|| format!("the script said {line:?}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.requests.take();
        // It ends with its input; how it ended no longer matters.
        let _ = self.child.wait();
    }
}

fn install(venv: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    let there = Command::new(&python)
        .args(["-c", "import agents, langgraph.checkpoint.sqlite"])
        .output();
    if there.is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    eprintln!("Installing {}", PACKAGES.join(" and "));
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(venv);
    succeed(&mut make).context("python3 -m venv failed")?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"])
        .arg("--disable-pip-version-check")
        .args(PACKAGES);
    succeed(&mut pip).context("pip install failed")?;
    // Thousands of new files waiting to be written would slow the first syncs measured.
    succeed(&mut Command::new("sync")).context("sync failed")
}

fn succeed(command: &mut Command) -> Result<()> {
    let out = command.output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(
        out.status.success(),
        "{}",
        said.lines().last().unwrap_or("it said nothing")
    );
    Ok(())
}
