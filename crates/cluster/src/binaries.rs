//! Finds PostgreSQL's binaries and the user they run as.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The environment variable with the folder of the binaries, if it is unusual.
pub const BINARIES_VARIABLE: &str = "TL_TEST_POSTGRES_PROGRAMS";

/// PostgreSQL's binaries, and the user they run as.
#[derive(Clone, Debug)]
pub struct PostgresBinaries {
    folder: PathBuf,
    /// The user and group they run as, if this process runs as root.
    user: Option<(u32, u32)>,
}

impl PostgresBinaries {
    /// Finds installed binaries: on the path, or where Debian puts them, newest first.
    pub fn find() -> Option<Self> {
        Self::in_folder(find_folder()?).ok()
    }

    /// Uses the binaries in a folder.
    pub fn in_folder(folder: PathBuf) -> Result<Self> {
        if !has_all_programs(&folder) {
            bail!("{} does not contain PostgreSQL", folder.display());
        }
        Ok(Self {
            folder,
            user: find_server_user()?,
        })
    }

    /// Finds installed binaries for a test that starts its own server. If there are none,
    /// prints that the test is skipped; in CI that is a failure.
    ///
    /// # Panics
    /// In CI if there are none.
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment tells a test where they are"
    )]
    pub fn for_tests() -> Option<Self> {
        let found = match std::env::var_os(BINARIES_VARIABLE) {
            Some(folder) => Self::in_folder(folder.into()).ok(),
            None => Self::find(),
        };
        if found.is_none() {
            assert!(
                std::env::var("CI").is_err(),
                "PostgreSQL is not installed, which is an error in CI"
            );
            eprintln!("SKIPPED: PostgreSQL is not installed");
        }
        found
    }

    /// Returns their folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the server's user the owner of a file or folder.
    pub(crate) fn chown_to_server_user(&self, path: &Path) -> Result<()> {
        if let Some((user, group)) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(group))?;
        }
        Ok(())
    }

    /// Returns a command for one of the binaries, run in a folder.
    pub(crate) fn command(&self, name: &str, within: &Path) -> Command {
        let mut command = self.command_as_user(self.folder.join(name));
        command.current_dir(within).env("LC_ALL", "C");
        command
    }

    /// Returns a command for a shell script that runs as the same user and ignores terminal
    /// signals.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.command_as_user("sh");
        command.args(["-c", script, "sh"]).process_group(0);
        command
    }

    fn command_as_user(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

fn find_folder() -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the search path is in the environment"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|folder| folder.join("initdb").exists());
    if let Some(folder) = on_path {
        // A link to one of the binaries leads to the others.
        let program = folder.join("initdb").canonicalize().ok()?;
        let folder = program.parent().map(Path::to_owned);
        return folder.filter(|folder| has_all_programs(folder));
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|folder| has_all_programs(folder))
        .collect();
    let number = |folder: &PathBuf| -> u32 {
        let version = folder.parent().and_then(Path::file_name);
        let version = version.and_then(|name| name.to_str());
        version.and_then(|name| name.parse().ok()).unwrap_or(0)
    };
    versions.sort_by_key(number);
    versions.pop()
}

fn has_all_programs(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_ctl"]
        .iter()
        .all(|program| folder.join(program).exists())
}

fn query_id(arguments: &[&str]) -> Result<u32> {
    let output = Command::new("id").args(arguments).output()?;
    let text = String::from_utf8(output.stdout)?;
    text.trim()
        .parse()
        .with_context(|| format!("`id {}` says {text:?}", arguments.join(" ")))
}

/// Returns whether this process runs as root.
pub fn is_root() -> Result<bool> {
    Ok(query_id(&["-u"])? == 0)
}

/// Returns the user that a server runs as, if this process runs as root.
fn find_server_user() -> Result<Option<(u32, u32)>> {
    if !is_root()? {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let (Ok(user), Ok(group)) = (query_id(&["-u", name]), query_id(&["-g", name])) {
            return Ok(Some((user, group)));
        }
    }
    bail!("PostgreSQL cannot run as root, and there is no user `postgres` or `nobody`")
}
