//! Installs client packages of other languages once, below the target folder.
//!
//! Versions are pinned in checked-in files. If packages cannot be installed, the tests print a
//! warning and pass, except in CI, where they fail.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether missing packages are an error.
#[allow(clippy::disallowed_methods, reason = "a test's own environment")]
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| ci != "false" && ci != "0" && !ci.is_empty())
}

/// Runs a command to completion; returns its output as the error if it failed.
pub(crate) fn run_command(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let decode = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = decode(&output.stdout) + &decode(&output.stderr);
    if output.status.success() {
        Ok(all)
    } else {
        Err(format!("{command:?} failed, {}:\n{all}", output.status))
    }
}

/// Returns a folder with installed packages, created by the first caller.
///
/// The folder's name is derived from its requirements, so that other versions get another folder.
fn install_once(
    name: &str,
    pins: &Path,
    install: impl FnOnce(&Path) -> Result<String, String>,
) -> Option<PathBuf> {
    let text = fs::read_to_string(pins).unwrap();
    let digest = throughline::Digest::of(text.as_bytes()).to_string();
    let folders = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    fs::create_dir_all(&folders).unwrap();
    let lock = File::create(folders.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let folder = folders.join(format!("{name}-{}", &digest[..16]));
    let mark = folder.join("installed");
    if mark.exists() {
        return Some(folder);
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    match install(&folder) {
        Ok(_) => {
            File::create(mark).unwrap();
            Some(folder)
        }
        Err(why) if is_ci() => panic!("the clients cannot be installed: {why}"),
        Err(why) => {
            eprintln!("\n!!! NOT TESTED: the clients cannot be installed: {why}\n");
            None
        }
    }
}

/// Folder of a Python environment with the packages of `requirements.txt`.
pub(crate) fn python(sources: &Path) -> Option<PathBuf> {
    let pins = sources.join("requirements.txt");
    install_once("python", &pins, |folder| {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet"]);
        pip.arg("--disable-pip-version-check");
        run_command(pip.arg("-r").arg(&pins))
    })
}

/// Folder with the packages of `package.json`.
pub(crate) fn node(sources: &Path) -> Option<PathBuf> {
    let pins = sources.join("package.json");
    install_once("node", &pins, |folder| {
        fs::copy(&pins, folder.join("package.json")).map_err(|error| error.to_string())?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund"]);
        run_command(npm.current_dir(folder))
    })
}
