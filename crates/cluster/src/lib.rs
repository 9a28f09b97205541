//! A PostgreSQL of one's own, for tests and chores: its programs are found, and a server is
//! started in a folder that goes with it.
//!
//! It runs as an unprivileged user where this runs as root, since it refuses to be root
//! itself. It can be stopped as if the power had failed and started again, copied to a
//! replica that follows it, and reached through something that [cuts](Cutter)
//! connections.

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

/// The port in the names of sockets, where nothing listens on a real one.
const SOCKET_PORT: u16 = 5432;

/// A server in a folder of its own, stopped and removed with this, and also if this process
/// is killed.
#[derive(Debug)]
pub struct Cluster {
    binaries: PostgresBinaries,
    folder: PathBuf,
    settings: Vec<String>,
    /// The port it listens on, where it is to be reached over TCP.
    port: Option<u16>,
    server: Option<Child>,
    /// Dropped last: there is nothing left for it to do then.
    _guard: CleanupGuard,
}

impl Cluster {
    /// Starts a server that is reached by a socket in its folder, so that nobody else gets
    /// in, with these settings besides (`name=value`).
    pub fn start(programs: &PostgresBinaries, settings: &[&str]) -> Result<Self> {
        let mut cluster = Self::create(programs, settings)?;
        cluster.initialize()?;
        cluster.ensure_running()?;
        Ok(cluster)
    }

    /// Starts a server that is reached over TCP as well, on this machine.
    pub fn start_with_tcp(programs: &PostgresBinaries, settings: &[&str]) -> Result<Self> {
        let mut cluster = Self::create(programs, settings)?;
        cluster.initialize()?;
        // Free a moment ago, and so most likely now.
        let free = std::net::TcpListener::bind("127.0.0.1:0")?;
        cluster.port = Some(free.local_addr()?.port());
        drop(free);
        cluster.ensure_running()?;
        Ok(cluster)
    }

    fn create(programs: &PostgresBinaries, settings: &[&str]) -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        // Short: the name of a socket has no more than a hundred bytes.
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
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name} failed: {said}");
        Ok(())
    }

    /// The programs it runs by.
    pub fn binaries(&self) -> &PostgresBinaries {
        &self.binaries
    }

    /// The folder it is in, where files for it may be put.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn data_folder(&self) -> PathBuf {
        data_folder_in(&self.folder)
    }

    /// Its address, by the socket in its folder.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.host())
    }

    /// The folder of its socket, as it is written in an address.
    pub fn host(&self) -> String {
        self.folder.display().to_string().replace('/', "%2F")
    }

    /// The port it listens on, where it does.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The socket it is reached by.
    pub fn socket(&self) -> PathBuf {
        let port = self.port.unwrap_or(SOCKET_PORT);
        self.folder.join(format!(".s.PGSQL.{port}"))
    }

    /// Puts a file into its folder that only it can read, and tells where.
    pub fn write_file(&self, name: &str, content: &str) -> Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.join(name);
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        self.binaries.chown_to_server_user(&path)?;
        Ok(path)
    }

    /// Starts it, where it is not running.
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

    /// Waits until it says that it is ready: on the last line of its file.
    fn wait_until_ready(&mut self) -> Result<()> {
        let file = self.data_folder().join("postmaster.pid");
        let started = Instant::now();
        loop {
            let said = std::fs::read_to_string(&file);
            let state = said.as_deref().ok().and_then(|said| said.lines().nth(7));
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

    /// Ends it at once, as if the power had failed: nothing is written that was not.
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
        // One that was killed has not taken its file away.
        let _ = std::fs::remove_file(self.data_folder().join("postmaster.pid"));
        Ok(())
    }

    /// A copy that follows it, and is asked for by the name `replica` in
    /// `synchronous_standby_names`.
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

    /// Has a replica follow nobody any more.
    pub fn promote(&self) -> Result<()> {
        self.run_program("pg_ctl", |promote| {
            promote
                .args(["promote", "--wait", "--silent", "--pgdata"])
                .arg(self.data_folder());
        })
    }

    /// Has it do something, by `psql`; gives what it says.
    pub fn run_sql(&self, sql: &str) -> Result<String> {
        let mut psql = self.binaries.command("psql", &self.folder);
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
            .args(["--set=ON_ERROR_STOP=1", "--command", sql, &self.url()]);
        if let Some(port) = self.port {
            psql.env("PGPORT", port.to_string());
        }
        let output = psql.output().context("psql cannot be run")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{sql}: {said}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

fn data_folder_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // What cannot be stopped or removed is in a folder for such things.
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

    /// Tells the process that it is the owner, who starts a server and waits to be killed.
    const OWNER_VARIABLE: &str = "TL_TEST_CLUSTER_OWNER";

    fn wait_to_be_killed(programs: &PostgresBinaries) -> ! {
        let cluster = Cluster::start(programs, &["fsync=off"]).unwrap();
        println!("folder: {}", cluster.folder().display());
        loop {
            std::thread::park();
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "how the owner learns of it")]
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
            let asked = kill.args(["-0", server]).stderr(Stdio::null()).status();
            asked.unwrap().success()
        };
        assert!(runs());
        owner.kill().unwrap();
        owner.wait().unwrap();
        let killed = Instant::now();
        while folder.exists() || runs() {
            assert!(killed.elapsed() < Duration::from_secs(30), "it is left");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
