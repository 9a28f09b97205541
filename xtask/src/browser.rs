//! The browser that the page is tested with and drawn by.

use anyhow::Result;

use crate::run::answers;
use crate::tools::ensure_packages;

/// The Debian packages it comes in.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];

/// Installs Chromium and its driver unless they are there.
pub(crate) fn get() -> Result<()> {
    ensure_packages("testing the web UI", &PACKAGES, || {
        answers("chromium", "--version") && answers("chromedriver", "--version")
    })
}
