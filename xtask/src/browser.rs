//! The browser that the page is tested with and drawn by.

use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{self, answers};

/// The Debian packages it comes in.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];

/// Whether Chromium and its driver can be run.
fn is_there() -> bool {
    answers("chromium", "--version") && answers("chromedriver", "--version")
}

/// Sees to it that there is a browser: installs it where that can be done. In CI it must
/// be there; elsewhere the tests of the page say loudly that they were skipped.
pub(crate) fn get() -> Result<()> {
    if is_there() {
        return Ok(());
    }
    if answers("apt-get", "--version") && is_root() {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "--yes", "--no-install-recommends"])
            .args(PACKAGES);
        run::run(&mut install)?;
    }
    if is_there() {
        return Ok(());
    }
    #[allow(clippy::disallowed_methods, reason = "this is the edge")]
    let in_ci = std::env::var_os("CI").is_some();
    if in_ci {
        bail!(
            "there is no Chromium to test the page with: install {}",
            PACKAGES.join(" and ")
        );
    }
    eprintln!(
        "\nThere is no Chromium: the page will NOT be tested. Install {}.",
        PACKAGES.join(" and ")
    );
    Ok(())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
