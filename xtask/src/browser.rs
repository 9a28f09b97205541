//! Installs the browser that the web page is tested with and photographed by.

use anyhow::Result;

use crate::process::is_runnable;
use crate::tools::ensure_packages;

/// The Debian packages it comes in.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];

/// Installs Chromium and its driver unless they are installed.
pub(crate) fn ensure_installed() -> Result<()> {
    ensure_packages("testing the web UI", &PACKAGES, || {
        is_runnable("chromium", "--version") && is_runnable("chromedriver", "--version")
    })
}
