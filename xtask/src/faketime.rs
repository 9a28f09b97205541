//! libfaketime, which gives the servers of the history checker wrong clocks.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{self, answers};

/// The Debian package it comes in.
const PACKAGE: &str = "libfaketime";

/// Where the test looks for it.
const PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

fn is_there() -> bool {
    PLACES.iter().any(|path| Path::new(path).exists())
}

/// Installs it where that can be done. In CI it must be there; elsewhere the test says that
/// clock skew is left out.
pub(crate) fn get() -> Result<()> {
    if is_there() || !cfg!(target_os = "linux") {
        return Ok(());
    }
    if answers("apt-get", "--version") && throughline_cluster::is_root()? {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "--yes", "--no-install-recommends", PACKAGE])
            .env("DEBIAN_FRONTEND", "noninteractive");
        run::run(&mut install)?;
    }
    if is_there() {
        return Ok(());
    }
    #[allow(clippy::disallowed_methods, reason = "this is the edge")]
    let in_ci = std::env::var_os("CI").is_some();
    if in_ci {
        bail!("there is no {PACKAGE} to test wrong clocks with: install it");
    }
    eprintln!("\nThere is no {PACKAGE}: wrong clocks will NOT be tested. Install it.");
    Ok(())
}
