//! `cargo xtask bench`: measurements, in release mode.

use anyhow::Result;

use crate::run::{self, built, cargo, workspace};

/// Measure
#[derive(clap::Args, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure
    #[arg(value_parser = ["store"])]
    what: String,
    /// A rough measure in a fraction of the time
    #[arg(long)]
    quick: bool,
    /// Write the table and picture into docs/ as well
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    let build = [
        "build",
        "--release",
        "-p",
        "throughline-cli",
        "-p",
        "throughline-bench",
    ];
    run::run(cargo().args(build))?;
    let mut bench = std::process::Command::new(built("release", "throughline-bench"));
    bench.current_dir(workspace());
    bench
        .arg(&args.what)
        .arg("--tl")
        .arg(built("release", "tl"));
    bench
        .arg("--venv")
        .arg(workspace().join("target/bench-venv"));
    if args.quick {
        bench.arg("--quick");
    }
    if args.write {
        bench.args([
            "--markdown",
            "docs/benchmarks.md",
            "--svg",
            "docs/benchmarks-store.svg",
        ]);
    }
    run::run(&mut bench)
}
