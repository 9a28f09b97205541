//! Test harness: runs `tl` in a fresh home with a fixed environment.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use throughline::Throughline;

/// A temporary home and working folder.
#[derive(Debug)]
pub(crate) struct Tl {
    folder: tempfile::TempDir,
    /// The umask of every process, if set.
    umask: Option<&'static str>,
}

/// The output and exit status of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    command: String,
    output: Output,
}

impl Tl {
    pub(crate) fn new() -> Self {
        // A path of fixed length, so that lines wrap the same way on every machine.
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("tl").rand_bytes(4);
        let folder = if cfg!(unix) {
            builder.tempdir_in("/tmp").unwrap()
        } else {
            builder.tempdir().unwrap()
        };
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            folder,
            umask: None,
        }
    }

    /// A harness whose processes have this umask.
    pub(crate) fn with_umask(umask: &'static str) -> Self {
        Self {
            umask: Some(umask),
            ..Self::new()
        }
    }

    /// The working folder.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The data folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The store's file.
    pub(crate) fn store(&self) -> PathBuf {
        self.home().join("sessions.db")
    }

    /// Lists files and folders that are accessible to others than their owner, with their
    /// modes, except in the given folders, which the test created itself.
    #[cfg(unix)]
    pub(crate) fn files_open_to_others(&self, except: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                let meta = std::fs::symlink_metadata(&path).unwrap();
                let name = path.strip_prefix(self.folder.path()).unwrap();
                let name = name.display().to_string();
                let mode = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777;
                if mode & 0o077 != 0 && !except.contains(&name.as_str()) {
                    found.push(format!("{name} {mode:o}"));
                }
                if meta.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Prepares a command without starting it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.command_in(&self.work(), args)
    }

    pub(crate) fn command_in(&self, folder: &Path, args: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_tl");
        let mut command = match self.umask {
            None => Command::new(program),
            Some(umask) => {
                let mut shell = Command::new("sh");
                let script = format!("umask {umask} && exec \"$0\" \"$@\"");
                shell.args(["-c", &script, program]);
                shell
            }
        };
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("THROUGHLINE_HOME", self.home())
            .env("TZ", "UTC");
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with(args, b"")
    }

    /// Runs a command with input on stdin.
    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> CommandOutput {
        run_to_end(self.command(args), args, stdin)
    }

    /// Runs a command that must succeed; returns its stdout.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        self.run(args).ok()
    }

    /// Runs a command with `--json` that must succeed; returns the parsed output.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&args)).unwrap()
    }

    /// Creates a session with these messages; returns its id.
    pub(crate) fn session(&self, name: &str, texts: &[&str]) -> String {
        let id = self.ok(&["new", "--name", name]).trim().to_owned();
        for text in texts {
            self.ok(&["append", &id, text]);
        }
        id
    }

    /// Acquires a lease as another process that has died; it expires after `term`.
    pub(crate) fn hold_lease_elsewhere(&self, work: &str, term: Duration) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.build().unwrap().block_on(async {
            let url = format!("sqlite:{}", self.store().display());
            let other = Throughline::open(&url).await.unwrap();
            let holder = "tl serve, process 12 on elsewhere (dead)";
            let lease = other
                .store()
                .acquire_lease(other.owner(), work, holder, term);
            lease.await.unwrap();
            other.close().await.unwrap();
        });
    }

    /// The texts of a session.
    pub(crate) fn texts(&self, session: &str) -> Vec<String> {
        let shown = self.json(&["show", session, "--all"]);
        let entries = shown["entries"].as_array().unwrap();
        let contents = entries.iter().filter_map(|entry| entry["content"].as_str());
        contents.map(ToOwned::to_owned).collect()
    }
}

/// Runs a command to completion.
pub(crate) fn run_to_end(mut command: Command, args: &[&str], stdin: &[u8]) -> CommandOutput {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    let writer = std::thread::spawn(move || {
        // A command that needs no input may not read it.
        let _ = pipe.write_all(&bytes);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    CommandOutput {
        command: args.join(" "),
        output,
    }
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn ok(&self) -> String {
        assert!(self.output.status.success(), "{self}");
        self.stdout()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.output.status.code()
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ tl {}", self.command)?;
        f.write_str(&self.stdout())?;
        if !self.output.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr())?;
        }
        match self.code() {
            Some(0) => Ok(()),
            Some(code) => writeln!(f, "--- exit {code}"),
            None => writeln!(f, "--- killed"),
        }
    }
}

/// Compares with the snapshot of that name, with variable parts masked.
#[macro_export]
macro_rules! assert_output {
    ($tl:expr, $name:literal, $($said:expr),+ $(,)?) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let folder = $tl.work().parent().unwrap().display().to_string();
        settings.add_filter(&regex_escape(&folder), "[folder]");
        settings.add_filter(r"\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{3}-[a-z0-9]{6}", "[session-id]");
        settings.add_filter(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[entry-id]");
        settings.add_filter(r"\b[0-9a-f]{64}\b", "[digest]");
        settings.add_filter(r"\b[0-9a-f]{12}\b", "[short]");
        settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "[time]");
        settings.add_filter(r"\b\d\d:\d\d:\d\d\b", "[clock]");
        settings.add_filter(r"inode:\d+:\d+", "inode:[inode]");
        let said = [$($said.to_string()),+].join("\n");
        settings.bind(|| insta::assert_snapshot!($name, said));
    }};
}

pub(crate) fn regex_escape(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            if c.is_alphanumeric() || c == '/' {
                vec![c]
            } else {
                vec!['\\', c]
            }
        })
        .collect()
}
