//! Runs other programs, printing their command lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Returns the folder of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Returns a command for the cargo that runs this, as if a user had started it.
///
/// The variables that cargo sets for this package are removed: build scripts depend on them,
/// and would rebuild half the tree at each switch between `cargo` and `cargo xtask`.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace());
    for (name, _) in std::env::vars_os() {
        let about_us = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if about_us
            .iter()
            .any(|start| name.to_string_lossy().starts_with(start))
        {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs a program to completion; fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shown = words.join(" ").replacen(env!("CARGO"), "cargo", 1);
    eprintln!("\n$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("{shown} could not be started"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Whether a program can be run with an argument, usually `--version`.
pub(crate) fn is_runnable(program: &str, argument: &str) -> bool {
    Command::new(program)
        .args(argument.split(' '))
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns the path of a file that cargo built.
pub(crate) fn built_path(profile: &str, name: &str) -> PathBuf {
    workspace().join("target").join(profile).join(name)
}
