//! libfaketime, which gives the servers of the history checker wrong clocks.

use std::path::Path;

use anyhow::Result;

use crate::tools::ensure_packages;

/// The Debian package it comes in.
const PACKAGE: &str = "libfaketime";

/// Where the test looks for it.
const LIBRARY_PATHS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
];

fn is_installed() -> bool {
    LIBRARY_PATHS.iter().any(|path| Path::new(path).exists())
}

/// Installs it unless it is there. Only Linux has it; elsewhere the test leaves clock skew out.
pub(crate) fn ensure_installed() -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    ensure_packages("testing wrong clocks", &[PACKAGE], is_installed)
}
