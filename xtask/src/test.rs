//! `cargo xtask test`: runs every check that must pass.

use anyhow::Result;

use crate::postgres::PostgresServers;
use crate::process::{self, cargo};
use crate::tools::{ensure_cargo_subcommand, ensure_programs};

/// Run all checks
#[derive(clap::Args, Debug)]
pub(crate) struct TestArgs {
    /// Run only tests whose name contains this, and no other checks
    filter: Option<String>,
}

pub(crate) fn run(args: &TestArgs) -> Result<()> {
    ensure_cargo_subcommand("nextest")?;
    ensure_programs()?;
    crate::browser::ensure_installed()?;
    crate::faketime::ensure_installed()?;
    if let Some(filter) = &args.filter {
        return run_tests(Some(filter), &PostgresServers::find_or_start()?);
    }
    process::run(cargo().args(["fmt", "--all", "--check"]))?;
    process::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))?;
    process::run(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--workspace",
        "--all-features",
        "--no-deps",
    ]))?;
    ensure_cargo_subcommand("deny")?;
    process::run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    process::run(cargo().args(["test", "--workspace", "--doc", "--all-features", "--quiet"]))?;
    run_tests(None, &PostgresServers::find_or_start()?)
}

fn run_tests(filter: Option<&str>, servers: &PostgresServers) -> Result<()> {
    let mut nextest = cargo();
    servers.set_env(&mut nextest);
    // In CI mode, tests fail instead of being skipped when something is missing.
    nextest.env("CI", "true");
    nextest.args([
        "nextest",
        "run",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]);
    nextest.args(filter);
    process::run(&mut nextest)
}
