//! `cargo xtask fuzz`: runs the fuzz targets for longer than the test suite does.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::process::{cargo, workspace};

/// A fuzz test.
struct Target {
    name: &'static str,
    package: &'static str,
    /// The cargo arguments that select its test binary.
    binary: &'static [&'static str],
    /// The prefix of its tests' names.
    tests: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        name: "entry",
        package: "throughline-model",
        binary: &["--test", "fuzz"],
        tests: "entry",
    },
    Target {
        name: "importers",
        package: "throughline-formats",
        binary: &["--test", "fuzz"],
        tests: "",
    },
    Target {
        name: "salvage",
        package: "throughline-sqlite",
        binary: &["--test", "fuzz"],
        tests: "salvage",
    },
    Target {
        name: "items",
        package: "throughline-server",
        binary: &["--lib"],
        tests: "openai::item::fuzz::",
    },
];

/// Run the fuzz targets for longer than the test suite does
#[derive(clap::Args, Debug)]
pub(crate) struct FuzzArgs {
    /// Run only this target
    #[arg(value_parser = target_names())]
    target: Option<String>,
    /// Run only the target's tests whose name contains this: `--only codex`
    #[arg(long)]
    only: Option<String>,
    /// Minutes per test
    #[arg(long, value_name = "N", default_value_t = 5)]
    minutes: u64,
    /// First run the input of this seed, as reported by a failure
    #[arg(long)]
    seed: Option<u128>,
}

fn target_names() -> clap::builder::PossibleValuesParser {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    names.into()
}

pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let mut failed = Vec::new();
    for target in TARGETS {
        if args
            .target
            .as_deref()
            .is_some_and(|name| name != target.name)
        {
            continue;
        }
        // Time and memory are measured per process, so each test runs in its own.
        let mut test = cargo();
        test.args(["nextest", "run", "--profile", "fuzz", "--no-tests", "pass"])
            .args(["--package", target.package])
            .args(target.binary)
            .args(["--filterset", &nextest_filter(target, args.only.as_deref())])
            .env(
                "BOLERO_RANDOM_TEST_TIME_MS",
                (args.minutes * 60_000).to_string(),
            );
        if let Some(seed) = args.seed {
            test.env("BOLERO_RANDOM_SEED", seed.to_string());
        }
        if crate::process::run(&mut test).is_err() {
            failed.push(target.name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    for path in failing_inputs() {
        eprintln!("failing input: {}", path.display());
    }
    bail!("{} failed", failed.join(" and "));
}

/// Returns the nextest filter that selects the tests.
fn nextest_filter(target: &Target, only: Option<&str>) -> String {
    let tests = target.tests;
    match only {
        Some(only) => format!("test(/^{tests}/) & test(~{only})"),
        None => format!("test(/^{tests}/)"),
    }
}

/// Returns the inputs that failed or crashed a process.
fn failing_inputs() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(workspace().join("target/fuzz"));
    let folders = folders.into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
    files.flatten().map(|file| file.path()).collect()
}
