//! The embedded store against what one would use instead.
//!
//! Real files on a real disk: a folder in memory would make every sync free and every
//! number meaningless, so the folder can be chosen and the report names its file system.

mod append;
pub(crate) mod memory;
mod peers;
mod reads;
mod rewrite;
mod sample;
mod start;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::chart::Chart;
use crate::machine::Machine;
use crate::rounds::Pace;
use crate::table::{Row, Table};
use crate::{markdown, svg};

use peers::Peers;
use sample::Clock;

/// Measure the embedded store
///
/// Compares durable appends, reads, memory and disk with plain files and with other
/// session stores, which are installed from PyPI into a folder of their own.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// Fewer and shorter rounds, a tenth of the entries
    #[arg(long)]
    quick: bool,
    /// Write the findings as a section of Markdown to this file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw the findings into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Where to put the files that are measured: on the disk that matters
    #[arg(long, value_name = "DIR", default_value = "target")]
    dir: PathBuf,
    /// Where the Python peers are installed, to be used again the next time
    #[arg(long, value_name = "DIR", default_value = "target/bench-venv")]
    venv: PathBuf,
    /// The `tl` whose start is timed [default: none, and its start is not measured]
    #[arg(long, value_name = "PATH")]
    tl: Option<PathBuf>,
    /// What to call `tl` with: `{store}` stands for the store's file
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "--store sqlite:{store} sessions",
        allow_hyphen_values = true
    )]
    tl_args: String,
    /// Only these [default: all]
    #[arg(long, value_name = "MEASURE", value_delimiter = ',')]
    only: Vec<Measure>,
}

/// One of the things that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Durable appends
    Append,
    /// Appends at different lengths, against rewriting the whole session
    Rewrite,
    /// Reading the tail, listing sessions
    Reads,
    /// Memory while appending, bytes on disk
    Memory,
    /// From the start of the process to its first line
    Start,
}

/// What all measures share.
struct Bench {
    dir: PathBuf,
    pace: Pace,
    /// What large things are divided by.
    scale: u64,
    clock: Arc<Clock>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// A folder for one measure, empty.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.dir.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(folder)
    }
}

/// What a measure adds to the report.
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

    fn chart(&mut self, chart: Chart) {
        self.charts.push(chart);
    }
}

/// Runs the measures that are asked for.
pub(crate) fn run(args: &StoreArgs) -> Result<()> {
    fs::create_dir_all(&args.dir).with_context(|| format!("making {}", args.dir.display()))?;
    let dir = tempfile::Builder::new()
        .prefix("throughline-bench-")
        .tempdir_in(&args.dir)?;
    let (rounds, millis, scale) = if args.quick {
        (3, 200, 10)
    } else {
        (7, 500, 1)
    };
    let bench = Bench {
        dir: dir.path().to_owned(),
        pace: Pace {
            rounds,
            slice: Duration::from_millis(millis),
        },
        scale,
        clock: Arc::new(Clock::start()?),
        runtime: tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?,
    };
    let machine = Machine::of(dir.path())?;
    eprintln!("On {machine}.");
    let wanted = |measure| args.only.is_empty() || args.only.contains(&measure);
    let mut findings = Findings::default();
    let mut notes = vec![NOTE.to_owned()];

    if wanted(Measure::Append) || wanted(Measure::Rewrite) {
        let peers = Peers::start(&args.venv, &bench.folder("peers")?);
        notes.extend(peers.about());
        if wanted(Measure::Append) {
            append::measure(&bench, &peers, &mut findings)?;
        }
        if wanted(Measure::Rewrite) {
            rewrite::measure(&bench, &peers, &mut findings)?;
        }
    }
    if wanted(Measure::Reads) {
        reads::measure(&bench, &mut findings)?;
    }
    if wanted(Measure::Memory) {
        memory::measure(&bench, &mut findings)?;
    }
    if wanted(Measure::Start) {
        start::measure(&bench, args.tl.as_deref(), &args.tl_args, &mut findings)?;
    }
    report(args, &machine, &notes, &findings)
}

const NOTE: &str = "Messages are 634 bytes of text. Contenders take turns within each round; a \
                    figure is the median of the rounds, a ratio is the median of the rounds' own \
                    ratios, with the lowest and highest beside it. Throughline acknowledges an \
                    append once it is synced to the disk.";

fn report(
    args: &StoreArgs,
    machine: &Machine,
    notes: &[String],
    findings: &Findings,
) -> Result<()> {
    println!("{}", findings.table);
    for chart in &findings.charts {
        println!("{}\n{}\n", chart.title, chart.lines().join("\n"));
    }
    let write = |file: &Path, text: String| {
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))
    };
    if let Some(file) = &args.svg {
        write(file, svg::draw(&findings.charts))?;
    }
    if let Some(file) = &args.markdown {
        let quick = if args.quick { " --quick" } else { "" };
        let picture = args.svg.as_deref().and_then(Path::file_name);
        let section = markdown::section(
            "The embedded store",
            &format!("cargo xtask bench store{quick}"),
            machine,
            notes,
            &findings.table,
            &findings.charts,
            picture.map(|name| name.to_string_lossy()).as_deref(),
        );
        write(file, section)?;
    }
    Ok(())
}
