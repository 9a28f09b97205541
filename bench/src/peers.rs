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

use crate::sample;

/// A script that drives some packages.
pub(crate) struct Script {
    /// What it says.
    pub(crate) source: &'static str,
    /// What it needs from PyPI.
    pub(crate) packages: &'static [&'static str],
    /// What it imports: says whether they are there.
    pub(crate) imports: &'static str,
}

#[derive(Serialize)]
struct Request<'a, W> {
    #[serde(flatten)]
    work: &'a W,
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
pub(crate) struct Peers {
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
    /// Installs what is not there yet and starts the script in a folder; `told` is what it
    /// is told besides.
    pub(crate) fn start(script: &Script, venv: &Path, folder: &Path, told: &[&str]) -> Self {
        let started = install(script, venv);
        match started.and_then(|()| Running::start(script, venv, folder, told)) {
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

    pub(crate) fn are_there(&self) -> bool {
        self.running.is_ok()
    }

    /// Why they are not there.
    pub(crate) fn why_not(&self) -> String {
        self.running.as_ref().err().cloned().unwrap_or_default()
    }

    /// Their versions, and how durable they are as they come.
    pub(crate) fn about(&self) -> Option<String> {
        self.about.clone()
    }

    /// How often a second they do it.
    pub(crate) fn rate(&self, work: &impl Serialize, slice: Duration) -> Result<f64> {
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
    fn start(script: &Script, venv: &Path, folder: &Path, told: &[&str]) -> Result<(Self, String)> {
        let file = folder.join("peers.py");
        fs::write(&file, script.source)?;
        let mut child = Command::new(venv.join("bin/python"))
            .arg(&file)
            .arg(folder)
            .args(told)
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

fn install(script: &Script, venv: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    let there = Command::new(&python).args(["-c", script.imports]).output();
    if there.is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    eprintln!("Installing {}", script.packages.join(" and "));
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(venv);
    succeed(&mut make).context("python3 -m venv failed")?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"])
        .arg("--disable-pip-version-check")
        .args(script.packages);
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
