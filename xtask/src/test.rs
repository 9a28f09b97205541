//! `cargo xtask test`: the one command that says whether all is well.

use anyhow::Result;

use crate::postgres::Servers;
use crate::run::{self, cargo};
use crate::tools::{ensure_cargo_subcommand, ensure_programs};

/// Everything that must pass
#[derive(clap::Args, Debug)]
pub(crate) struct TestArgs {
    /// Only tests whose name contains this, and no other checks
    filter: Option<String>,
}

pub(crate) fn run(args: &TestArgs) -> Result<()> {
    ensure_cargo_subcommand("nextest")?;
    ensure_programs()?;
    crate::browser::get()?;
    crate::faketime::get()?;
    if let Some(filter) = &args.filter {
        return run_tests(Some(filter), &Servers::get()?);
    }
    run::run(cargo().args(["fmt", "--all", "--check"]))?;
    run::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))?;
    run::run(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--workspace",
        "--all-features",
        "--no-deps",
    ]))?;
    ensure_cargo_subcommand("deny")?;
    run::run(cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    run::run(cargo().args(["test", "--workspace", "--doc", "--all-features", "--quiet"]))?;
    run_tests(None, &Servers::get()?)
}

fn run_tests(filter: Option<&str>, servers: &Servers) -> Result<()> {
    let mut nextest = cargo();
    servers.tell(&mut nextest);
    // Tests that a plain `cargo test` skips where something is missing fail here, as they do in CI.
    nextest.env("CI", "true");
    nextest.args([
        "nextest",
        "run",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]);
    nextest.args(filter);
    run::run(&mut nextest)
}
