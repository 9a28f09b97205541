//! Stops a server when the process that started it is killed.

use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};

use crate::{PostgresBinaries, data_folder_in};

/// Waits until the other end of its input is closed, then stops the server and removes its
/// folder. Arguments: `$1` is `pg_ctl`, `$2` the data folder, `$3` the folder to remove.
const CLEANUP_SCRIPT: &str = r#"cat > /dev/null
cd /
[ -d "$3" ] || exit 0
"$1" stop --mode=immediate --silent --pgdata "$2" 2> /dev/null
rm -rf "$3""#;

/// A helper process that survives this one and cleans up after it.
#[derive(Debug)]
pub(crate) struct CleanupGuard(Child);

impl CleanupGuard {
    pub(crate) fn spawn(folder: &Path, programs: &PostgresBinaries) -> Result<Self> {
        let child = programs
            .shell(CLEANUP_SCRIPT)
            .arg(programs.folder().join("pg_ctl"))
            .args([&data_folder_in(folder), folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("the cleanup process of PostgreSQL cannot be started")?;
        Ok(Self(child))
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
