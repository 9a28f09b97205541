//! Compiles `recorder.c`, which runs a program and logs its file operations, and builds the
//! commands that run programs under it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{CrashSimError, Fault};

const SOURCE: &str = include_str!("recorder.c");

/// The compiled recorder.
#[derive(Clone, Debug)]
pub struct Recorder {
    program: PathBuf,
}

impl Recorder {
    /// Compiles the recorder into a folder.
    pub fn build(folder: &Path) -> Result<Self, CrashSimError> {
        // Tests run concurrently: each compiles its own copy, and the last rename wins.
        let own = folder.join(format!("recorder-{}", std::process::id()));
        let (source, built) = (own.with_extension("c"), own.with_extension("out"));
        std::fs::write(&source, SOURCE).map_err(CrashSimError::io(&source))?;
        let output = Command::new("cc")
            .args(["-O1", "-o"])
            .arg(&built)
            .arg(&source)
            .output()
            .map_err(CrashSimError::io("cc"))?;
        let _ = std::fs::remove_file(&source);
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(CrashSimError::Compiler(message));
        }
        let program = folder.join("recorder");
        std::fs::rename(&built, &program).map_err(CrashSimError::io(&program))?;
        Ok(Self { program })
    }

    /// Returns a command that runs `program` and appends its operations below `root` to `log`.
    ///
    /// Arguments and environment can be added as to any command. It exits with the program's
    /// code, or 137 if the program was killed.
    pub fn command(
        &self,
        log: &Path,
        root: &Path,
        faults: &[Fault],
        program: impl AsRef<OsStr>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(log).arg(root);
        command.args(faults.iter().map(ToString::to_string));
        command.arg("--").arg(program);
        command
    }
}
