//! `cargo xtask bench`: builds in release mode and runs a benchmark.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::postgres;
use crate::process::{self, built_path, cargo, workspace};

/// Run a benchmark
#[derive(clap::Args, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure
    #[arg(value_parser = ["store", "context", "chat", "recall", "server", "import", "postgres"])]
    what: String,
    /// Measure roughly, in a fraction of the time
    #[arg(long)]
    quick: bool,
    /// For recall: a LoCoMo file of conversations with questions
    #[arg(long, value_name = "FILE")]
    locomo: Option<PathBuf>,
    /// For recall: the folder of a contextual model
    #[arg(long, value_name = "DIR")]
    contextual: Option<PathBuf>,
    /// Also write the table and chart to docs/
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
    process::run(cargo().args(build))?;
    let mut bench = std::process::Command::new(built_path("release", "throughline-bench"));
    bench.current_dir(workspace());
    bench.arg(&args.what);
    if matches!(
        args.what.as_str(),
        "store" | "chat" | "server" | "import" | "postgres"
    ) {
        bench.arg("--tl").arg(built_path("release", "tl"));
    }
    if args.what == "store" {
        let venv = workspace().join("target/bench-venv");
        bench.arg("--venv").arg(venv);
    }
    // The server is stopped when this is dropped.
    let postgres = match args.what.as_str() {
        "postgres" => Some(postgres::start_durable()?),
        _ => None,
    };
    if let Some((server, programs)) = &postgres {
        let venv = workspace().join("target/bench-postgres-venv");
        bench.args(["--server", &server.url]);
        bench.arg("--programs").arg(programs);
        bench.arg("--venv").arg(venv);
    }
    if args.quick {
        bench.arg("--quick");
    }
    if let Some(file) = &args.locomo {
        bench.arg("--locomo").arg(std::path::absolute(file)?);
    }
    if let Some(folder) = &args.contextual {
        bench.arg("--contextual").arg(std::path::absolute(folder)?);
    }
    let section = workspace().join("target/bench-section.md");
    if args.write {
        let picture = format!("docs/benchmarks-{}.svg", args.what);
        bench
            .arg("--markdown")
            .arg(&section)
            .args(["--svg", &picture]);
    }
    process::run(&mut bench)?;
    if args.write {
        put_section(&args.what, &std::fs::read_to_string(&section)?)?;
    }
    Ok(())
}

/// Replaces a benchmark's section in docs/benchmarks.md.
fn put_section(name: &str, section: &str) -> Result<()> {
    let page = workspace().join("docs/benchmarks.md");
    let text = std::fs::read_to_string(&page)?;
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let (Some(start), Some(end)) = (text.find(&open), text.find(&close)) else {
        bail!("docs/benchmarks.md has no section for {name}: expected {open} … {close}");
    };
    let before = &text[..start + open.len()];
    let after = &text[end..];
    std::fs::write(&page, format!("{before}\n{}\n{after}", section.trim()))?;
    eprintln!("Wrote docs/benchmarks.md");
    Ok(())
}
