//! What the model is sent: what building a request costs, and what it saves.

mod cost;
mod turns;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::chart::Chart;
use crate::machine::Machine;
use crate::table::{Row, Table};
use crate::{markdown, svg};

/// Measure requests
///
/// Builds requests on short and very long sessions, and follows a conversation of many
/// turns under every policy, against sending everything each time.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// A tenth of the entries and turns
    #[arg(long)]
    quick: bool,
    /// Write the findings as a section of Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw the conversation into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Where to put the files that are measured: on the disk that matters
    #[arg(long, value_name = "DIR", default_value = "target")]
    dir: PathBuf,
}

/// What the measures add to the report.
#[derive(Default)]
struct Findings {
    table: Table,
    charts: Vec<Chart>,
}

impl Findings {
    fn row(&mut self, row: Row) {
        eprintln!("{}", row.cells().join("  "));
        self.table.0.push(row);
    }
}

const NOTE: &str = "Requests are of at most 8,000 tokens (o200k). The conversation alternates \
                    questions of about 30 tokens and answers of about 150; compaction is by the \
                    extractive summarizer. Tokens sent are estimates by the same tokenizer.";

/// Runs all measures.
pub(crate) fn run(args: &ContextArgs) -> Result<()> {
    fs::create_dir_all(&args.dir).with_context(|| format!("making {}", args.dir.display()))?;
    let dir = tempfile::Builder::new()
        .prefix("throughline-bench-")
        .tempdir_in(&args.dir)?;
    let scale = if args.quick { 10 } else { 1 };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let machine = Machine::of(dir.path())?;
    let mut findings = Findings::default();
    cost::measure(&runtime, dir.path(), scale, &mut findings)?;
    let lines = turns::measure(&runtime, scale, &mut findings)?;

    println!("{}", findings.table);
    for chart in &findings.charts {
        println!("{}\n{}\n", chart.title, chart.lines().join("\n"));
    }
    if let Some(file) = &args.svg {
        fs::write(file, svg::plot("Tokens sent, turn by turn", "turn", &lines))?;
    }
    if let Some(file) = &args.markdown {
        let quick = if args.quick { " --quick" } else { "" };
        let picture = args.svg.as_deref().and_then(Path::file_name);
        let section = markdown::section(
            "What the model is sent",
            &format!("cargo xtask bench context{quick}"),
            &machine,
            &[NOTE.to_owned()],
            &findings.table,
            &findings.charts,
            picture.map(|name| name.to_string_lossy()).as_deref(),
        );
        fs::write(file, section)?;
    }
    Ok(())
}
