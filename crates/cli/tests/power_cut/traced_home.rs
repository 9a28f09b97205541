//! A `tl` whose every write, sync and acknowledgement is recorded.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;

use throughline_crash_sim::{Disk, DiskState, DurabilityModel, Fault, Loss, Recorder, Trace};

/// One message of a stream.
#[derive(Clone, Debug)]
pub(crate) struct MessageLine {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// Messages as `tl append --json` takes them.
pub(crate) fn to_json_lines(lines: &[MessageLine]) -> Vec<u8> {
    let json = lines.iter().map(|line| {
        let content = &line.text;
        let json = serde_json::json!({"role": "user", "content": content, "id": line.id});
        format!("{json}\n")
    });
    json.collect::<String>().into_bytes()
}

/// The program under test: another one, such as an older version, where the variable names it.
#[allow(clippy::disallowed_methods, reason = "how a test learns it")]
pub(crate) fn program_path() -> PathBuf {
    std::env::var_os("TL_CRASH_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_tl").into(), PathBuf::from)
}

/// A home whose files are watched.
pub(crate) struct TracedHome {
    folder: tempfile::TempDir,
    recorder: Recorder,
    disk: Disk,
}

/// Memory, where there is some: a sync then costs nothing, and what it means is the model's business.
pub(crate) fn fast_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

impl TracedHome {
    /// An empty home that is durable.
    pub(crate) fn new(model: DurabilityModel) -> Self {
        Self::with_home(model, true)
    }

    /// A place for a home that is still to be made.
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

    /// The folder with the home's parent in it, and room for other files.
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

    /// How many records there are. Nothing may be running.
    pub(crate) fn position(&self) -> usize {
        Trace::read(&self.log()).map_or(0, |trace| trace.records.len())
    }

    /// What was recorded so far. With nothing lost, the model has what is really there.
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

    /// Runs a command to its end.
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

    /// Runs a command, and again without faults if it did not succeed.
    pub(crate) fn run_until_ok(&self, faults: &[Fault], args: &[&str]) {
        if !self.run(faults, args).status.success() {
            self.run_ok(args);
        }
    }

    /// Appends messages, so many at a time, and waits for their acknowledgements before the next.
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

/// The environment of a `tl` of one's own.
pub(crate) fn set_environment(command: &mut Command, folder: &Path, home: &Path) {
    command
        .current_dir(folder.join("work"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder)
        .env("THROUGHLINE_HOME", home)
        .env("TZ", "UTC");
}

/// Runs a command with this on its stdin.
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

/// However a run ends, it does not panic, and the recorder works.
pub(crate) fn assert_no_panic(output: Output) -> Output {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    assert_ne!(output.status.code(), Some(125), "{said}");
    output
}
