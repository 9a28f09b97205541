//! PostgreSQL's programs: where they are, and whom they run as.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Tells tests where the programs are, where that is nowhere usual.
pub const BINARIES_VARIABLE: &str = "TL_TEST_POSTGRES_PROGRAMS";

/// PostgreSQL's programs, run as a user who may.
#[derive(Clone, Debug)]
pub struct PostgresBinaries {
    folder: PathBuf,
    /// Whom they run as, where this runs as root.
    user: Option<(u32, u32)>,
}

impl PostgresBinaries {
    /// Those that are there already: on the path, or where Debian puts them, newest first.
    pub fn find() -> Option<Self> {
        Self::in_folder(find_folder()?).ok()
    }

    /// Those in a folder.
    pub fn in_folder(folder: PathBuf) -> Result<Self> {
        if !has_all_programs(&folder) {
            bail!("{} has no PostgreSQL", folder.display());
        }
        Ok(Self {
            folder,
            user: find_server_user()?,
        })
    }

    /// Those that are there, for a test that needs a server of its own. Where there are none
    /// it is told that the test is skipped, but in CI that is a failure.
    ///
    /// # Panics
    /// In CI if there are none.
    #[expect(clippy::disallowed_methods, reason = "how a test learns of it")]
    pub fn for_tests() -> Option<Self> {
        let found = match std::env::var_os(BINARIES_VARIABLE) {
            Some(folder) => Self::in_folder(folder.into()).ok(),
            None => Self::find(),
        };
        if found.is_none() {
            assert!(
                std::env::var("CI").is_err(),
                "there is no PostgreSQL: in CI that is a failure"
            );
            eprintln!("SKIPPED: there is no PostgreSQL here to start a server of one's own");
        }
        found
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives a file or folder to whom they run as.
    pub(crate) fn chown_to_server_user(&self, path: &Path) -> Result<()> {
        if let Some((user, group)) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(group))?;
        }
        Ok(())
    }

    /// One of them, to be run in a folder.
    pub(crate) fn command(&self, name: &str, within: &Path) -> Command {
        let mut command = self.command_as_user(self.folder.join(name));
        command.current_dir(within).env("LC_ALL", "C");
        command
    }

    /// A script, run as they are and not stopped by what is typed at a terminal.
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
    #[expect(clippy::disallowed_methods, reason = "where programs are looked for")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|folder| folder.join("initdb").exists());
    if let Some(folder) = on_path {
        // A link to one program says where the others are.
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

/// Whether this runs as root.
pub fn is_root() -> Result<bool> {
    Ok(query_id(&["-u"])? == 0)
}

/// Whom a server is to run as, where this runs as root.
fn find_server_user() -> Result<Option<(u32, u32)>> {
    if !is_root()? {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let (Ok(user), Ok(group)) = (query_id(&["-u", name]), query_id(&["-g", name])) {
            return Ok(Some((user, group)));
        }
    }
    bail!("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")
}
