//! Runs `tl` with every write, sync and acknowledgement recorded.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use throughline_crash_sim::{Disk, DiskState, DurabilityModel, Fault, Loss, Recorder, Trace};

/// One message to append.
#[derive(Clone, Debug)]
pub(crate) struct MessageLine {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// Formats messages as input of `tl append --json`.
pub(crate) fn to_json_lines(lines: &[MessageLine]) -> Vec<u8> {
    let json = lines.iter().map(|line| {
        let content = &line.text;
        let json = serde_json::json!({"role": "user", "content": content, "id": line.id});
        format!("{json}\n")
    });
    json.collect::<String>().into_bytes()
}

/// The program under test, or the one that `TL_CRASH_PROGRAM` names, such as an older
/// version.
#[allow(clippy::disallowed_methods, reason = "how a test learns it")]
pub(crate) fn program_path() -> PathBuf {
    std::env::var_os("TL_CRASH_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_tl").into(), PathBuf::from)
}

/// A home whose file operations are recorded.
pub(crate) struct TracedHome {
    folder: tempfile::TempDir,
    recorder: Recorder,
    disk: Disk,
}

/// A folder in memory if possible: real syncs then cost nothing, and the model decides what
/// they do.
pub(crate) fn fast_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

impl TracedHome {
    /// Creates an empty, durable home.
    pub(crate) fn new(model: DurabilityModel) -> Self {
        Self::with_home(model, true)
    }

    /// Prepares a folder for a home that does not exist yet.
    pub(crate) fn without_home(model: DurabilityModel) -> Self {
        Self::with_home(model, false)
    }

    fn with_home(model: DurabilityModel, home: bool) -> Self {
        let folder = fast_folder();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        if home {
            let mut owner_only = std::fs::DirBuilder::new();
            owner_only.mode(0o700);
            owner_only.create(root.join("home")).unwrap();
        }
        Self {
            recorder: Recorder::build(folder.path()).unwrap(),
            disk: Disk::read(&root, model).unwrap(),
            folder,
        }
    }

    /// The folder that contains the home's parent, with room for other files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The disk before anything was recorded.
    pub(crate) fn disk(&self) -> Disk {
        self.disk.clone()
    }

    /// The number of trace records. No process may be running.
    pub(crate) fn position(&self) -> usize {
        Trace::read(&self.log()).map_or(0, |trace| trace.records.len())
    }

    /// Returns the trace so far. With nothing lost, the model's disk equals the real one.
    pub(crate) fn trace(&self) -> Trace {
        let trace = Trace::read(&self.log()).unwrap();
        let mut disk = self.disk.clone();
        for record in &trace.records {
            disk.apply(record).unwrap();
        }
        let (mut model, mut real) = (
            disk.after_loss(&Loss::Nothing),
            DiskState::read(&self.root()).unwrap(),
        );
        for mapped in disk.mapped_files() {
            model.entries.remove(&mapped);
            real.entries.remove(&mapped);
        }
        for (path, content) in &real.entries {
            assert!(model.entries.get(path) == Some(content), "{path} differs");
        }
        assert_eq!(model.entries.len(), real.entries.len());
        trace
    }

    pub(crate) fn command(&self, faults: &[Fault], args: &[&str]) -> Command {
        let mut command = self
            .recorder
            .command(&self.log(), &self.root(), faults, program_path());
        command.args(args);
        set_environment(&mut command, self.folder.path(), &self.root().join("home"));
        command
    }

    /// Runs a command to completion.
    pub(crate) fn run(&self, faults: &[Fault], args: &[&str]) -> Output {
        let output = self.command(faults, args).stdin(Stdio::null()).output();
        assert_no_panic(output.unwrap())
    }

    /// Runs a command that must succeed.
    pub(crate) fn run_ok(&self, args: &[&str]) {
        let output = self.run(&[], args);
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tl {args:?}: {failed}");
    }

    /// Runs a command, and retries it without faults if it failed.
    pub(crate) fn run_until_ok(&self, faults: &[Fault], args: &[&str]) {
        if !self.run(faults, args).status.success() {
            self.run_ok(args);
        }
    }

    /// Appends messages in batches of this size, waiting for acknowledgements in between.
    pub(crate) fn append(
        &self,
        faults: &[Fault],
        session: &str,
        lines: &[MessageLine],
        at_a_time: usize,
    ) -> Output {
        let mut child = self
            .command(faults, &["append", session, "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (acknowledge, acknowledged) = mpsc::channel();
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            for line in stdout.lines().map_while(Result::ok) {
                all.extend_from_slice(line.as_bytes());
                all.push(b'\n');
                let _ = acknowledge.send(());
            }
            all
        });
        'stream: for group in lines.chunks(at_a_time) {
            if stdin.write_all(&to_json_lines(group)).is_err() {
                break;
            }
            for _ in group {
                if acknowledged.recv().is_err() {
                    break 'stream;
                }
            }
        }
        drop(stdin);
        let mut output = child.wait_with_output().unwrap();
        output.stdout = reading.join().unwrap();
        assert_no_panic(output)
    }
}

/// Sets the environment of an isolated `tl`.
pub(crate) fn set_environment(command: &mut Command, folder: &Path, home: &Path) {
    command
        .current_dir(folder.join("work"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .env("THROUGHLINE_HOME", home)
        .env("TZ", "UTC");
}

/// Runs a command with this input on stdin.
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A program that ends early does not read all of it.
    let _ = writing.join().unwrap();
    assert_no_panic(output)
}

/// Asserts that the program did not panic, and that the recorder works.
pub(crate) fn assert_no_panic(output: Output) -> Output {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    assert_ne!(output.status.code(), Some(125), "{said}");
    output
}
