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
pub(crate) struct PeerScript {
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
    process: Result<RefCell<PeerProcess>, String>,
    about: Option<String>,
}

struct PeerProcess {
    child: Child,
    // Closed first, which is how the script is told to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peers {
    /// Installs what is not there yet and starts the script in a folder; `told` is what it
    /// is told besides.
    pub(crate) fn start(script: &PeerScript, venv: &Path, folder: &Path, told: &[&str]) -> Self {
        let started = install_packages(script, venv);
        match started.and_then(|()| PeerProcess::start(script, venv, folder, told)) {
            Ok((running, about)) => Self {
                process: Ok(RefCell::new(running)),
                about: Some(about),
            },
            Err(error) => {
                eprintln!("the Python peers cannot be measured: {error:#}");
                Self {
                    process: Err(format!("{error:#}")),
                    about: None,
                }
            }
        }
    }

    pub(crate) fn are_available(&self) -> bool {
        self.process.is_ok()
    }

    /// Why they are not there.
    pub(crate) fn unavailable_reason(&self) -> String {
        self.process.as_ref().err().cloned().unwrap_or_default()
    }

    /// Their versions, and how durable they are as they come.
    pub(crate) fn about(&self) -> Option<String> {
        self.about.clone()
    }

    /// How often a second they do it.
    pub(crate) fn measure_rate(&self, work: &impl Serialize, slice: Duration) -> Result<f64> {
        let running = self
            .process
            .as_ref()
            .map_err(|why| anyhow::anyhow!("{why}"))?;
        let request = Request {
            work,
            seconds: slice.as_secs_f64(),
            text: &sample::message_text(),
        };
        let answer: Answer = running
            .borrow_mut()
            .send_request(&serde_json::to_string(&request)?)?;
        Ok(answer.rate)
    }
}

impl PeerProcess {
    fn start(
        script: &PeerScript,
        venv: &Path,
        folder: &Path,
        told: &[&str],
    ) -> Result<(Self, String)> {
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
        let about: About = running.read_answer()?;
        Ok((running, about.about))
    }

    fn send_request<T: for<'de> Deserialize<'de>>(&mut self, request: &str) -> Result<T> {
        let requests = self.requests.as_mut().context("the script has ended")?;
        writeln!(requests, "{request}")?;
        requests.flush()?;
        self.read_answer()
    }

    fn read_answer<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the script ended early");
        serde_json::from_str(&line).with_context(|| format!("the script said {line:?}"))
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        self.requests.take();
        // It ends with its input; how it ended no longer matters.
        let _ = self.child.wait();
    }
}

fn install_packages(script: &PeerScript, venv: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    let there = Command::new(&python).args(["-c", script.imports]).output();
    if there.is_ok_and(|out| out.status.success()) {
        return Ok(());
    }
    eprintln!("Installing {}", script.packages.join(" and "));
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(venv);
    run_checked(&mut make).context("python3 -m venv failed")?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"])
        .arg("--disable-pip-version-check")
        .args(script.packages);
    run_checked(&mut pip).context("pip install failed")?;
    // Thousands of new files waiting to be written would slow the first syncs measured.
    run_checked(&mut Command::new("sync")).context("sync failed")
}

fn run_checked(command: &mut Command) -> Result<()> {
    let out = command.output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(
        out.status.success(),
        "{}",
        said.lines().last().unwrap_or("it said nothing")
    );
    Ok(())
}
