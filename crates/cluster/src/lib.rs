//! Starts temporary PostgreSQL servers, for tests and development tasks.
//!
//! Each [`Cluster`] runs in its own folder, which is removed with it. The server runs as an
//! unprivileged user if this process runs as root, since PostgreSQL refuses to run as root. It
//! can be stopped as if the power had failed and restarted, copied to a streaming replica, and
//! reached through a [`FaultProxy`] that cuts connections.

mod binaries;
mod cleanup_guard;
mod fault_proxy;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

pub use binaries::{BINARIES_VARIABLE, PostgresBinaries, is_root};
use cleanup_guard::CleanupGuard;
pub use fault_proxy::{FaultProxy, Upstream};

/// The port number in socket names, even if the server does not listen on TCP.
const SOCKET_PORT: u16 = 5432;

/// A server in its own folder, stopped and removed when this is dropped, and also if this
/// process is killed.
#[derive(Debug)]
pub struct Cluster {
    binaries: PostgresBinaries,
    folder: PathBuf,
    settings: Vec<String>,
    /// The TCP port it listens on, if any.
    port: Option<u16>,
    server: Option<Child>,
    /// Dropped last, when there is nothing left to clean up.
    _guard: CleanupGuard,
}

impl Cluster {
    /// Starts a server that is only reachable through a socket in its folder, so that no one
    /// else can connect, with additional settings (`name=value`).
    pub fn start(programs: &PostgresBinaries, settings: &[&str]) -> Result<Self> {
        let mut cluster = Self::create(programs, settings)?;
        cluster.initialize()?;
        cluster.ensure_running()?;
        Ok(cluster)
    }

    /// Starts a server that is also reachable over TCP on this machine.
    pub fn start_with_tcp(programs: &PostgresBinaries, settings: &[&str]) -> Result<Self> {
        let mut cluster = Self::create(programs, settings)?;
        cluster.initialize()?;
        // The port was free a moment ago, so it most likely still is.
        let free = std::net::TcpListener::bind("127.0.0.1:0")?;
        cluster.port = Some(free.local_addr()?.port());
        drop(free);
        cluster.ensure_running()?;
        Ok(cluster)
    }

    fn create(programs: &PostgresBinaries, settings: &[&str]) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        // Short, since a socket path may have no more than about a hundred bytes.
        let name = format!("tl-pg-{}-{made}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        programs.chown_to_server_user(&folder)?;
        Ok(Self {
            binaries: programs.clone(),
            _guard: CleanupGuard::spawn(&folder, programs)?,
            folder,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
            port: None,
            server: None,
        })
    }

    fn initialize(&self) -> Result<()> {
        self.run_program("initdb", |initdb| {
            initdb
                .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
                .args(["--locale=C", "--no-sync", "--pgdata"])
                .arg(self.data_folder());
        })
    }

    fn run_program(&self, name: &str, with: impl FnOnce(&mut std::process::Command)) -> Result<()> {
        let mut command = self.binaries.command(name, &self.folder);
        with(&mut command);
        let output = command
            .output()
            .with_context(|| format!("{name} cannot be run"))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name} failed: {stderr}");
        Ok(())
    }

    /// Returns the binaries it runs.
    pub fn binaries(&self) -> &PostgresBinaries {
        &self.binaries
    }

    /// Returns its folder, where tests may put files for it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn data_folder(&self) -> PathBuf {
        data_folder_in(&self.folder)
    }

    /// Returns the URL of its socket.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.host())
    }

    /// Returns the folder of its socket, percent-encoded for a URL.
    pub fn host(&self) -> String {
        self.folder.display().to_string().replace('/', "%2F")
    }

    /// Returns the TCP port it listens on, if any.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> PathBuf {
        let port = self.port.unwrap_or(SOCKET_PORT);
        self.folder.join(format!(".s.PGSQL.{port}"))
    }

    /// Writes a file to its folder that only the server can read; returns its path.
    pub fn write_file(&self, name: &str, content: &str) -> Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.join(name);
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        self.binaries.chown_to_server_user(&path)?;
        Ok(path)
    }

    /// Starts the server if it is not running.
    pub fn ensure_running(&mut self) -> Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        let mut server = self.binaries.command("postgres", &self.folder);
        server.arg("-D").arg(self.data_folder());
        let (addresses, port) = match self.port {
            Some(port) => ("127.0.0.1", port),
            None => ("", SOCKET_PORT),
        };
        let usual = [
            format!("listen_addresses={addresses}"),
            format!("port={port}"),
            format!("unix_socket_directories={}", self.folder.display()),
            "max_connections=300".to_owned(),
            "log_min_messages=fatal".to_owned(),
        ];
        for setting in usual.iter().chain(&self.settings) {
            server.args(["-c", setting]);
        }
        let log = std::fs::File::create(self.folder.join("log"))?;
        server
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = server.spawn().context("PostgreSQL cannot be started")?;
        self.server = Some(child);
        self.wait_until_ready()
    }

    /// Waits until the last line of the log says that the server is ready.
    fn wait_until_ready(&mut self) -> Result<()> {
        let file = self.data_folder().join("postmaster.pid");
        let started = Instant::now();
        loop {
            let content = std::fs::read_to_string(&file);
            let state = content
                .as_deref()
                .ok()
                .and_then(|content| content.lines().nth(7));
            if state.is_some_and(|state| ["ready", "standby"].contains(&state.trim())) {
                return Ok(());
            }
            let ended = match &mut self.server {
                Some(child) => child.try_wait()?.is_some(),
                None => true,
            };
            if ended || started.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(self.folder.join("log"))?;
                bail!("PostgreSQL did not start: {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server at once, as if the power had failed: nothing more is written.
    pub fn stop_immediately(&mut self) -> Result<()> {
        let Some(mut child) = self.server.take() else {
            return Ok(());
        };
        let stopped = self.run_program("pg_ctl", |stop| {
            stop.args(["stop", "--mode=immediate", "--silent", "--pgdata"])
                .arg(self.data_folder());
        });
        if stopped.is_err() {
            child.kill()?;
        }
        child.wait()?;
        // A killed server leaves its PID file behind.
        let _ = std::fs::remove_file(self.data_folder().join("postmaster.pid"));
        Ok(())
    }

    /// Starts a streaming replica, with the name `replica` for `synchronous_standby_names`.
    pub fn start_replica(&self) -> Result<Self> {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        let mut replica = Self::create(&self.binaries, &settings)?;
        let from = format!(
            "host={} port={} user=postgres application_name=replica",
            self.folder.display(),
            self.port.unwrap_or(SOCKET_PORT)
        );
        replica.run_program("pg_basebackup", |copy| {
            copy.args(["--checkpoint=fast", "--wal-method=stream", "--no-sync"])
                .args(["--write-recovery-conf", "--dbname", &from, "--pgdata"])
                .arg(replica.data_folder());
        })?;
        replica.ensure_running()?;
        Ok(replica)
    }

    /// Promotes a replica to a primary.
    pub fn promote(&self) -> Result<()> {
        self.run_program("pg_ctl", |promote| {
            promote
                .args(["promote", "--wait", "--silent", "--pgdata"])
                .arg(self.data_folder());
        })
    }

    /// Runs SQL with `psql`; returns its output.
    pub fn run_sql(&self, sql: &str) -> Result<String> {
        let mut psql = self.binaries.command("psql", &self.folder);
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
            .args(["--set=ON_ERROR_STOP=1", "--command", sql, &self.url()]);
        if let Some(port) = self.port {
            psql.env("PGPORT", port.to_string());
        }
        let output = psql.output().context("psql cannot be run")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{sql}: {stderr}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

fn data_folder_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Errors are ignored: the folder is a temporary one.
        let _ = self.stop_immediately();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_our_own_answers_and_leaves_nothing_behind() {
        let Some(programs) = PostgresBinaries::for_tests() else {
            return;
        };
        let mut cluster = Cluster::start(&programs, &["fsync=off"]).unwrap();
        let folder = cluster.folder().to_owned();
        assert_eq!(cluster.run_sql("SHOW fsync").unwrap(), "off");
        cluster.stop_immediately().unwrap();
        assert!(cluster.run_sql("SELECT 1").is_err());
        cluster.ensure_running().unwrap();
        assert_eq!(cluster.run_sql("SELECT 1").unwrap(), "1");
        drop(cluster);
        assert!(!folder.exists());
    }

    /// Marks the child process that starts a server and waits to be killed.
    const OWNER_VARIABLE: &str = "TL_TEST_CLUSTER_OWNER";

    fn wait_to_be_killed(programs: &PostgresBinaries) -> ! {
        let cluster = Cluster::start(programs, &["fsync=off"]).unwrap();
        println!("folder: {}", cluster.folder().display());
        loop {
            std::thread::park();
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the owner process is configured through its environment"
    )]
    fn a_server_goes_when_its_owner_is_killed() {
        use std::io::{BufRead as _, BufReader};
        let Some(programs) = PostgresBinaries::for_tests() else {
            return;
        };
        if std::env::var_os(OWNER_VARIABLE).is_some() {
            wait_to_be_killed(&programs);
        }
        let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("tests::a_server_goes_when_its_owner_is_killed")
            .env(OWNER_VARIABLE, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
        let folder = lines
            .map_while(Result::ok)
            .find_map(|line| Some(PathBuf::from(line.split_once("folder: ")?.1)));
        let folder = folder.unwrap();
        let file = std::fs::read_to_string(data_folder_in(&folder).join("postmaster.pid")).unwrap();
        let server = file.lines().next().unwrap();
        let runs = || {
            let mut kill = std::process::Command::new("kill");
            let status = kill.args(["-0", server]).stderr(Stdio::null()).status();
            status.unwrap().success()
        };
        assert!(runs());
        owner.kill().unwrap();
        owner.wait().unwrap();
        let killed = Instant::now();
        while folder.exists() || runs() {
            assert!(
                killed.elapsed() < Duration::from_secs(30),
                "it is still there"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
