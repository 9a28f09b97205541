//! Runs `tl` in a pseudo-terminal whose screen can be read and whose keys can be pressed.
//!
//! Nothing here waits for a fixed time: the reader signals every change, and waiting
//! functions check again. [`TIMEOUT`] only ends a test that hangs.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pty_process::Size;

use crate::harness::Tl;
use crate::screen::{COLUMNS, ROWS, normalize, rows};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
const SCROLLBACK: usize = 5_000;
/// The sequence that the line editor sends when it starts to read a line.
const PROMPT_SEQUENCE: &[u8] = b"\x1b[?2004h";

pub(crate) const ENTER: &str = "\r";
pub(crate) const ALT_ENTER: &str = "\x1b\r";
pub(crate) const TAB: &str = "\t";
pub(crate) const UP: &str = "\x1b[A";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const ESCAPE: &str = "\x1b";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_U: &str = "\x15";

/// A `tl` that is ready to start.
pub(crate) struct PtyCommand {
    command: Command,
    folder: String,
}

/// A `tl` running in a terminal.
pub(crate) struct Pty {
    child: Child,
    keys: File,
    seen: Arc<SharedScreen>,
    reader: Option<JoinHandle<()>>,
    /// How many lines were typed, and so how many prompts were answered.
    typed: usize,
    folder: String,
}

#[derive(Default)]
struct SharedScreen {
    state: Mutex<ScreenState>,
    changed: Condvar,
}

struct ScreenState {
    parser: vt100::Parser,
    raw: Vec<u8>,
    ended: bool,
}

impl Default for ScreenState {
    fn default() -> Self {
        Self {
            parser: vt100::Parser::new(ROWS, COLUMNS, SCROLLBACK),
            raw: Vec::new(),
            ended: false,
        }
    }
}

impl ScreenState {
    /// How many prompts have been shown.
    fn prompts(&self) -> usize {
        let windows = self.raw.windows(PROMPT_SEQUENCE.len());
        windows.filter(|bytes| *bytes == PROMPT_SEQUENCE).count()
    }

    /// Whether the cursor is behind a prompt.
    fn at_prompt(&self) -> bool {
        let screen = self.parser.screen();
        screen.bracketed_paste() && screen.cursor_position().1 > 0
    }
}

impl Tl {
    /// Prepares `tl` with these arguments for a terminal.
    pub(crate) fn terminal(&self, args: &[&str]) -> PtyCommand {
        let mut command = self.command(args);
        command
            .env("TERM", "xterm-256color")
            // Loading the default encoding's table takes longer than a test.
            .env("TL_ENCODING", "rough");
        PtyCommand {
            command,
            folder: self.work().parent().unwrap().display().to_string(),
        }
    }

    /// Starts `tl` with these arguments and waits for the first prompt.
    pub(crate) fn chat(&self, args: &[&str]) -> Pty {
        self.terminal(args).start_ready()
    }
}

impl PtyCommand {
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> Pty {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(ROWS.get(), COLUMNS.get())).unwrap();
        let command = pty_process::blocking::Command::from(self.command);
        let child = command.spawn(pts).unwrap();
        let keys = File::from(OwnedFd::from(pty));
        let mut output = keys.try_clone().unwrap();
        let seen = Arc::new(SharedScreen::default());
        let seeing = Arc::clone(&seen);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading from a terminal that has no writer left fails.
            while let Ok(count) = output.read(&mut bytes)
                && count > 0
            {
                let mut state = seeing.state.lock().unwrap();
                state.parser.process(&bytes[..count]);
                state.raw.extend_from_slice(&bytes[..count]);
                seeing.changed.notify_all();
            }
            seeing.state.lock().unwrap().ended = true;
            seeing.changed.notify_all();
        });
        Pty {
            child,
            keys,
            seen,
            reader: Some(reader),
            typed: 0,
            folder: self.folder,
        }
    }

    /// Starts it and waits for the first prompt.
    pub(crate) fn start_ready(self) -> Pty {
        let pty = self.start();
        pty.wait_for_prompt();
        pty
    }
}

impl Pty {
    #[track_caller]
    fn wait(
        &self,
        what: &str,
        until: impl Fn(&mut ScreenState) -> bool,
    ) -> MutexGuard<'_, ScreenState> {
        let end = Instant::now() + TIMEOUT;
        let mut state = self.seen.state.lock().unwrap();
        while !until(&mut state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || state.ended {
                drop(state);
                panic!("no {what} on the screen:\n{}", self.scrollback());
            }
            (state, _) = self.seen.changed.wait_timeout(state, left).unwrap();
        }
        state
    }

    /// Waits for a prompt that has not been answered yet.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) {
        let typed = self.typed;
        drop(self.wait("prompt", |state| {
            state.prompts() > typed && state.at_prompt()
        }));
    }

    /// Types a line at the prompt, without ending it.
    #[track_caller]
    pub(crate) fn type_line(&mut self, line: &str) {
        self.wait_for_prompt();
        self.send_keys(line);
        self.enter();
    }

    /// Ends the typed line.
    pub(crate) fn enter(&mut self) {
        self.typed += 1;
        self.send_keys(ENTER);
    }

    /// Presses a key that ends the line.
    pub(crate) fn press(&mut self, key: &str) {
        self.typed += 1;
        self.send_keys(key);
    }

    /// Types a line and waits for the next prompt.
    #[track_caller]
    pub(crate) fn send_line(&mut self, line: &str) {
        self.type_line(line);
        self.wait_for_prompt();
    }

    /// Presses keys without waiting for a prompt.
    pub(crate) fn send_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        drop(self.wait(&format!("{text:?}"), |state| {
            state.parser.screen().contents().contains(text)
        }));
    }

    /// Waits until the screen ends with a text.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, text: &str) {
        drop(self.wait(&format!("{text:?} at the end"), |state| {
            state.parser.screen().contents().trim_end().ends_with(text)
        }));
    }

    /// Returns the screen, with variable parts masked.
    pub(crate) fn screen(&self) -> String {
        let state = self.seen.state.lock().unwrap();
        let screen = state.parser.screen();
        let shown: Vec<_> = screen.rows(0, COLUMNS.get()).collect();
        let shown = shown.into_iter().enumerate().map(|(row, text)| {
            let wraps = screen.row_wrapped(u16::try_from(row).unwrap());
            (text, wraps)
        });
        normalize(&shown.collect::<Vec<_>>(), &self.folder)
    }

    /// Returns everything that was ever on the screen, with variable parts masked.
    pub(crate) fn scrollback(&self) -> String {
        let mut state = self.seen.state.lock().unwrap();
        normalize(&rows(&mut state.parser), &self.folder)
    }

    /// Returns all output received so far as text.
    pub(crate) fn raw(&self) -> String {
        let state = self.seen.state.lock().unwrap();
        String::from_utf8_lossy(&state.raw).into_owned()
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.finish_reading();
    }

    /// Waits for the process to end; returns its exit code.
    #[track_caller]
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        drop(self.wait("end", |state| state.ended));
        self.finish_reading();
        self.child.wait().unwrap().code()
    }

    /// Exits with `exit`; returns the exit code.
    #[track_caller]
    pub(crate) fn exit(&mut self) -> Option<i32> {
        self.type_line("exit");
        self.exit_code()
    }

    fn finish_reading(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
