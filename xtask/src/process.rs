//! Running other programs, and saying which.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The folder of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The cargo that runs this, as if a person had started it.
///
/// What cargo told us about ourselves is left out: build scripts look at the names, and would
/// build half the tree anew each time one switches between `cargo` and `cargo xtask`.
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

/// Runs a program to its end; fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let shown = words.join(" ").replacen(env!("CARGO"), "cargo", 1);
    eprintln!("\n$ {shown}");
    let status = command
        .status()
        .with_context(|| format!("{shown} cannot be run"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Whether a program answers to `--version`.
pub(crate) fn is_runnable(program: &str, argument: &str) -> bool {
    Command::new(program)
        .args(argument.split(' '))
        .output()
        .is_ok_and(|output| output.status.success())
}

/// A file that cargo built.
pub(crate) fn built_path(profile: &str, name: &str) -> PathBuf {
    workspace().join("target").join(profile).join(name)
}
