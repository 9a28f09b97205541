//! Runs other session stores (Python packages from PyPI) for comparison, through a script.
//!
//! The script keeps running and takes requests line by line, so that it can alternate with the
//! other contenders and the interpreter's start is not measured.

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
    /// The script's source.
    pub(crate) source: &'static str,
    /// The PyPI packages it needs.
    pub(crate) packages: &'static [&'static str],
    /// An import statement that succeeds if they are installed.
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

/// The script's description of itself, sent when it has started.
#[derive(Deserialize)]
struct About {
    about: String,
}

/// The running peers, or why they cannot be measured.
pub(crate) struct Peers {
    process: Result<RefCell<PeerProcess>, String>,
    about: Option<String>,
}

struct PeerProcess {
    child: Child,
    // Dropped first: closing its input ends the script.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peers {
    /// Installs missing packages and starts the script in a folder, with `arguments` as its
    /// arguments.
    pub(crate) fn start(
        script: &PeerScript,
        venv: &Path,
        folder: &Path,
        arguments: &[&str],
    ) -> Self {
        let started = install_packages(script, venv);
        match started.and_then(|()| PeerProcess::start(script, venv, folder, arguments)) {
            Ok((running, about)) => Self {
                process: Ok(RefCell::new(running)),
                about: Some(about),
            },
            Err(error) => {
                eprintln!("cannot measure the Python peers: {error:#}");
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

    /// Returns why they are unavailable.
    pub(crate) fn unavailable_reason(&self) -> String {
        self.process.as_ref().err().cloned().unwrap_or_default()
    }

    /// Describes their versions and default durability.
    pub(crate) fn about(&self) -> Option<String> {
        self.about.clone()
    }

    /// Returns how many operations per second they perform.
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
        arguments: &[&str],
    ) -> Result<(Self, String)> {
        let file = folder.join("peers.py");
        fs::write(&file, script.source)?;
        let mut child = Command::new(venv.join("bin/python"))
            .arg(&file)
            .arg(folder)
            .args(arguments)
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
        serde_json::from_str(&line).with_context(|| format!("the script printed {line:?}"))
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        self.requests.take();
        // It ends with its input; its exit status no longer matters.
        let _ = self.child.wait();
    }
}

fn install_packages(script: &PeerScript, venv: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    let installed = Command::new(&python).args(["-c", script.imports]).output();
    if installed.is_ok_and(|out| out.status.success()) {
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
    // Thousands of new files waiting to be written would slow the first measured syncs.
    run_checked(&mut Command::new("sync")).context("sync failed")
}

fn run_checked(command: &mut Command) -> Result<()> {
    let out = command.output()?;
    let stderr = String::from_utf8_lossy(&out.stderr);
    ensure!(
        out.status.success(),
        "{}",
        stderr.lines().last().unwrap_or("no output")
    );
    Ok(())
}
