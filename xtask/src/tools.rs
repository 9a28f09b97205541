//! Installs the tools that `cargo xtask` commands need, or fails.
//!
//! No test is skipped because a tool is missing.

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{self, cargo, is_runnable};

/// Installs a cargo subcommand unless it is installed: `nextest` is in the crate
/// `cargo-nextest`.
pub(crate) fn ensure_cargo_subcommand(name: &str) -> Result<()> {
    if is_runnable(env!("CARGO"), &format!("{name} --version")) {
        return Ok(());
    }
    process::run(cargo().args(["install", "--locked", &format!("cargo-{name}")]))
}

/// Installs a program from crates.io unless it is installed.
pub(crate) fn ensure_cargo_program(name: &str) -> Result<()> {
    if is_runnable(name, "--version") {
        return Ok(());
    }
    process::run(cargo().args(["install", "--locked", name]))
}

/// Installs Debian packages unless `is_installed`; fails if that is impossible or does not
/// help.
pub(crate) fn ensure_packages(
    purpose: &str,
    packages: &[&str],
    is_installed: impl Fn() -> bool,
) -> Result<()> {
    if is_installed() {
        return Ok(());
    }
    if is_runnable("apt-get", "--version") && throughline_cluster::is_root()? {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive");
        process::run(&mut install)?;
    }
    if !is_installed() {
        bail!(
            "{purpose} needs a tool that is not installed, and no test is skipped; install {} \
             (Debian packages)",
            packages.join(" and ")
        );
    }
    Ok(())
}

/// Installs the programs that tests run: Python and Node.js for the clients, git, strace.
pub(crate) fn ensure_programs() -> Result<()> {
    ensure_packages(
        "testing the Python clients",
        &["python3", "python3-venv"],
        || {
            let check = Command::new("python3")
                .args(["-c", "import venv, ensurepip"])
                .output();
            check.is_ok_and(|output| output.status.success())
        },
    )?;
    ensure_packages("testing the JavaScript clients", &["nodejs", "npm"], || {
        is_runnable("node", "--version") && is_runnable("npm", "--version")
    })?;
    if cfg!(target_os = "linux") {
        ensure_packages("testing power cuts", &["strace"], || {
            is_runnable("strace", "--version")
        })?;
    }
    ensure_packages("testing projects", &["git"], || {
        is_runnable("git", "--version")
    })
}
