//! `cargo xtask test`: the one command that says whether all is well.

use anyhow::Result;

use crate::postgres::Servers;
use crate::run::{self, answers, cargo};

/// Everything that must pass
#[derive(clap::Args, Debug)]
pub(crate) struct TestArgs {
    /// Only tests whose name contains this, and no other checks
    filter: Option<String>,
}

pub(crate) fn run(args: &TestArgs) -> Result<()> {
    get_nextest()?;
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
    if answers(env!("CARGO"), "deny --version") {
        run::run(cargo().args(["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
    } else {
        eprintln!("\ncargo-deny is not installed: licences were not checked");
    }
    run::run(cargo().args(["test", "--workspace", "--doc", "--all-features", "--quiet"]))?;
    run_tests(None, &Servers::get()?)
}

/// The runner, where it is not there yet.
fn get_nextest() -> Result<()> {
    if answers(env!("CARGO"), "nextest --version") {
        return Ok(());
    }
    run::run(cargo().args(["install", "--locked", "cargo-nextest"]))
}

fn run_tests(filter: Option<&str>, servers: &Servers) -> Result<()> {
    let mut nextest = cargo();
    servers.tell(&mut nextest);
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
