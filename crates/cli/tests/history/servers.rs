//! Runs several `tl serve` processes over one store, which can be killed, paused and given
//! a wrong clock.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Paths of the library that changes a process's clock.
const FAKETIME_PATHS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

/// How long a server may take to start while others hold the store.
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// The servers, and the store they share.
pub(crate) struct Servers {
    folder: tempfile::TempDir,
    store: String,
    slots: Vec<Slot>,
    faketime: Option<&'static str>,
}

/// One server; its process changes over time.
struct Slot {
    child: Option<Child>,
    is_paused: bool,
    published: Arc<Mutex<PublishedAddress>>,
    starts: usize,
}

/// The address of a server.
#[derive(Default)]
struct PublishedAddress {
    /// The process it belongs to, so that a dead process's address is not published late.
    process: usize,
    /// `None` while it is down.
    address: Option<SocketAddr>,
}

impl Slot {
    /// Withdraws the address, so that clients no longer use it.
    fn unpublish(&self) {
        *self.published.lock().unwrap() = PublishedAddress::default();
    }
}

/// Where clients look up the servers' addresses.
#[derive(Clone)]
pub(crate) struct Addresses(Vec<Arc<Mutex<PublishedAddress>>>);

impl Addresses {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, server: usize) -> Option<SocketAddr> {
        self.0[server].lock().unwrap().address
    }
}

impl Servers {
    /// Starts servers over the store at an address, or over a new SQLite file.
    pub(crate) fn start(count: usize, store: Option<String>) -> Self {
        let folder = tempfile::Builder::new().prefix("tlh").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let file = folder.path().join("home/sessions.db");
        let mut servers = Self {
            store: store.unwrap_or_else(|| format!("sqlite:{}", file.display())),
            folder,
            slots: Vec::new(),
            faketime: find_faketime(),
        };
        for server in 0..count {
            servers.slots.push(Slot {
                child: None,
                is_paused: false,
                published: Arc::default(),
                starts: 0,
            });
            servers.launch(server);
            servers.wait_until_up(server);
        }
        servers
    }

    pub(crate) fn addresses(&self) -> Addresses {
        Addresses(
            self.slots
                .iter()
                .map(|slot| Arc::clone(&slot.published))
                .collect(),
        )
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The store's file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("home/sessions.db")
    }

    /// Whether clocks can be changed.
    pub(crate) fn can_skew(&self) -> bool {
        self.faketime.is_some()
    }

    /// A `tl` command on the same store, with the right time.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tl"));
        command
            .current_dir(self.folder.path().join("work"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("THROUGHLINE_HOME", self.folder.path().join("home"))
            .env("TZ", "UTC")
            .args(["--store", &self.store]);
        command
    }

    /// Doctor's findings, except those that kills and wrong clocks explain: leases of
    /// killed servers whose clock was ahead, and files that the next indexer removes.
    pub(crate) fn doctor_findings(&self) -> Vec<Value> {
        let output = self.command().args(["doctor", "--json"]).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        let report: Result<Value, _> = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("tl doctor: {error}: {err}"));
        let mut findings = report["findings"].as_array().unwrap().clone();
        findings
            .retain(|finding| finding["finding"] != "lease" && finding["finding"] != "leftover");
        findings
    }

    /// Runs a command that must succeed; returns its output.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self.command().args(args).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tl {}: {err}", args.join(" "));
        String::from_utf8(output.stdout).unwrap()
    }

    fn clock_file(&self, server: usize) -> PathBuf {
        self.folder.path().join(format!("clock-{server}"))
    }

    /// Starts a server's process, which publishes its address when it is ready.
    pub(crate) fn launch(&mut self, server: usize) {
        let mut command = self.command();
        if let Some(library) = self.faketime {
            let clock = self.clock_file(server);
            if !clock.exists() {
                std::fs::write(&clock, "+0").unwrap();
            }
            command
                .env("LD_PRELOAD", library)
                .env("FAKETIME_TIMESTAMP_FILE", clock)
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1")
                .env("FAKETIME_DISABLE_SHM", "1");
        }
        let log = self.folder.path().join(format!("server-{server}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let slot = &mut self.slots[server];
        slot.starts += 1;
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let published = Arc::clone(&slot.published);
        let process = slot.starts;
        published.lock().unwrap().process = process;
        // Another process may be holding the store: do not wait for it here.
        std::thread::spawn(move || {
            let mut line = String::new();
            if BufReader::new(out).read_line(&mut line).is_err() {
                return;
            }
            let Ok(told) = serde_json::from_str::<Value>(&line) else {
                return;
            };
            let url = told["url"].as_str().unwrap();
            let at = url.split_once("://").unwrap().1;
            let mut published = published.lock().unwrap();
            if published.process == process {
                published.address = at.trim_end_matches('/').parse().ok();
            }
        });
        slot.child = Some(child);
    }

    /// Waits for a launched server. One that ended by itself is started again.
    #[track_caller]
    pub(crate) fn wait_until_up(&mut self, server: usize) {
        let started = Instant::now();
        while !self.is_up(server) {
            if self.has_ended(server) {
                self.launch(server);
            }
            assert!(
                started.elapsed() < START_TIMEOUT,
                "server {server} does not start"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn is_up(&self, server: usize) -> bool {
        let published = self.slots[server].published.lock().unwrap();
        published.address.is_some()
    }

    /// Whether a server's process ended without being stopped.
    pub(crate) fn has_ended(&mut self, server: usize) -> bool {
        match &mut self.slots[server].child {
            Some(child) => child.try_wait().unwrap().is_some(),
            None => false,
        }
    }

    /// Kills a server immediately.
    pub(crate) fn kill(&mut self, server: usize) {
        let slot = &mut self.slots[server];
        slot.unpublish();
        slot.is_paused = false;
        if let Some(mut child) = slot.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Asks a server to stop, and waits until it has.
    pub(crate) fn stop(&mut self, server: usize) {
        self.signal(server, "-TERM");
        let slot = &mut self.slots[server];
        slot.unpublish();
        if let Some(mut child) = slot.child.take() {
            child.wait().unwrap();
        }
    }

    pub(crate) fn pause(&mut self, server: usize) {
        self.slots[server].is_paused = true;
        self.signal(server, "-STOP");
    }

    pub(crate) fn resume(&mut self, server: usize) {
        if std::mem::take(&mut self.slots[server].is_paused) {
            self.signal(server, "-CONT");
        }
    }

    /// Sets a server's clock off by this many seconds.
    pub(crate) fn skew(&self, server: usize, seconds: i64) {
        // Replaced atomically, so that no process reads half of it.
        let new = self.folder.path().join("clock.new");
        std::fs::write(&new, format!("{seconds:+}")).unwrap();
        std::fs::rename(new, self.clock_file(server)).unwrap();
    }

    fn signal(&self, server: usize, signal: &str) {
        if let Some(child) = &self.slots[server].child {
            let id = child.id().to_string();
            // It may have ended meanwhile.
            let _ = Command::new("kill").args([signal, &id]).status().unwrap();
        }
    }

    /// How often processes were started.
    pub(crate) fn starts(&self) -> usize {
        self.slots.iter().map(|slot| slot.starts).sum()
    }

    /// Keeps the folder with the servers' logs, for diagnosing a failure.
    pub(crate) fn keep_folder(&mut self) -> PathBuf {
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in 0..self.slots.len() {
            self.kill(server);
        }
    }
}

/// Finds the library that changes a process's clock. Without it that fault is skipped, with
/// a note; in CI that is a failure.
#[expect(clippy::disallowed_methods, reason = "how a test learns of it")]
fn find_faketime() -> Option<&'static str> {
    let found = FAKETIME_PATHS
        .into_iter()
        .find(|path| Path::new(path).exists());
    if found.is_none() {
        assert!(
            !cfg!(target_os = "linux") || std::env::var_os("CI").is_none(),
            "there is no libfaketime: in CI that is a failure"
        );
        eprintln!("SKIPPED: clock skew, since libfaketime is not installed (Debian: libfaketime)");
    }
    found
}
