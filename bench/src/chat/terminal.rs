//! Runs `tl` in a pseudo-terminal and types into it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pty_process::Size;

/// What the line editor writes when it starts reading a line.
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
            // Reading fails once the other side of the terminal is closed.
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

    /// Waits until `what` has been shown.
    fn wait_for(&self, what: &[u8]) -> Result<()> {
        let start = Instant::now();
        let mut seen = Vec::new();
        while start.elapsed() < TIMEOUT {
            seen.extend(
                self.output
                    .recv_timeout(TIMEOUT)
                    .context("nothing was shown")?,
            );
            if seen.windows(what.len()).any(|window| window == what) {
                return Ok(());
            }
        }
        bail!("{:?} was never shown", String::from_utf8_lossy(what))
    }

    pub(super) fn wait_for_prompt(&mut self) -> Result<()> {
        self.wait_for(PROMPT)
    }

    /// Returns the seconds until a key is on the screen.
    pub(super) fn time_key(&mut self) -> Result<f64> {
        // Output still pending does not belong to this key.
        while self.output.try_recv().is_ok() {}
        let start = Instant::now();
        self.keys.write_all(b"x")?;
        self.wait_for(b"x")?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Clears the line and exits the chat.
    pub(super) fn exit(mut self) -> Result<()> {
        self.keys.write_all(b"\x15\x04")?;
        self.child.wait()?;
        Ok(())
    }
}
