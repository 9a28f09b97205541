//! Installs libfaketime, which gives the servers of the history checker wrong clocks.

use std::path::Path;

use anyhow::Result;

use crate::tools::ensure_packages;

/// The Debian package it comes in.
const PACKAGE: &str = "libfaketime";

/// The paths at which the test looks for it.
const LIBRARY_PATHS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

fn is_installed() -> bool {
    LIBRARY_PATHS.iter().any(|path| Path::new(path).exists())
}

/// Installs it unless it is installed. It exists on Linux only; elsewhere the test skips clock
/// skew.
pub(crate) fn ensure_installed() -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    ensure_packages("testing wrong clocks", &[PACKAGE], is_installed)
}
