//! `tl` in a terminal, with a finger on its keys.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pty_process::Size;

/// What the line editor says when it begins to read a line.
const PROMPT: &[u8] = b"\x1b[?2004h";
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
}

impl Terminal {
    pub(super) fn start(command: Command) -> Result<Self> {
        let (pty, pts) = pty_process::blocking::open().context("opening a terminal")?;
        pty.resize(Size::new(40, 100))?;
        let child = pty_process::blocking::Command::from(command).spawn(pts)?;
        let keys = File::from(OwnedFd::from(pty));
        let mut output = keys.try_clone()?;
        let (show, shown) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // A terminal that nobody writes to any more is an error to read from.
            while let Ok(count) = output.read(&mut bytes)
                && count > 0
            {
                if show.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            keys,
            output: shown,
        })
    }

    /// Waits until it has shown something.
    fn wait_for(&self, what: &[u8]) -> Result<()> {
        let start = Instant::now();
        let mut seen = Vec::new();
        while start.elapsed() < TIMEOUT {
            seen.extend(
                self.output
                    .recv_timeout(TIMEOUT)
                    .context("it shows nothing")?,
            );
            if seen.windows(what.len()).any(|window| window == what) {
                return Ok(());
            }
        }
        bail!("it never showed {:?}", String::from_utf8_lossy(what))
    }

    pub(super) fn wait_for_prompt(&mut self) -> Result<()> {
        self.wait_for(PROMPT)
    }

    /// Seconds until a key is on the screen.
    pub(super) fn time_key(&mut self) -> Result<f64> {
        // What was shown late is not this key.
        while self.output.try_recv().is_ok() {}
        let start = Instant::now();
        self.keys.write_all(b"x")?;
        self.wait_for(b"x")?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Takes back what was typed, and leaves.
    pub(super) fn exit(mut self) -> Result<()> {
        self.keys.write_all(b"\x15\x04")?;
        self.child.wait()?;
        Ok(())
    }
}
