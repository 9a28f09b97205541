//! Benchmarks the embedded store against the alternatives.
//!
//! Uses real files on a real disk: in a memory file system every sync would be free and the
//! numbers meaningless. So the folder can be chosen, and the report names its file system.

mod append;
pub(crate) mod memory;
mod reads;
mod rewrite;
mod start;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;

use crate::peers::{PeerScript, Peers};
use crate::report::{BenchReport, OutputArgs};
use crate::sample::SampleClock;

/// Benchmark the embedded store
///
/// Compares durable appends, reads, memory and disk usage with plain files and with other
/// session stores, which are installed from PyPI into a separate folder.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Where to install the Python peers; reused by later runs
    #[arg(long, value_name = "DIR", default_value = "target/bench-venv")]
    venv: PathBuf,
    /// The `tl` whose start is timed [default: none, and its start is not measured]
    #[arg(long, value_name = "PATH")]
    tl: Option<PathBuf>,
    /// The arguments of `tl`; `{store}` is replaced by the store's file
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "--store sqlite:{store} sessions",
        allow_hyphen_values = true
    )]
    tl_args: String,
    /// Run only these measurements [default: all]
    #[arg(long, value_name = "MEASURE", value_delimiter = ',')]
    only: Vec<Measure>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Durable appends
    Append,
    /// Appends to sessions of different lengths, compared with rewriting the whole session
    Rewrite,
    /// Reading the tail, listing sessions
    Reads,
    /// Memory while appending, bytes on disk
    Memory,
    /// From the start of the process to its first line
    Start,
}

const PEERS: PeerScript = PeerScript {
    source: include_str!("peers.py"),
    packages: &["openai-agents", "langgraph-checkpoint-sqlite"],
    imports: "import agents, langgraph.checkpoint.sqlite",
};

/// A task for a peer.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[serde(tag = "work", rename_all = "snake_case")]
enum PeerTask {
    /// `SQLiteSession.add_items`, a message at a time.
    Session { writers: usize },
    /// `SqliteSaver.put` of a checkpoint with that many messages.
    Saver { messages: u64 },
}

/// What all measurements share.
struct Bench {
    run: crate::bench::Bench,
    clock: Arc<SampleClock>,
}

impl Deref for Bench {
    type Target = crate::bench::Bench;

    fn deref(&self) -> &Self::Target {
        &self.run
    }
}

/// Runs the selected measurements.
pub(crate) fn run(args: &StoreArgs) -> Result<()> {
    let bench = Bench {
        run: crate::bench::Bench::prepare(&args.output, 200, 500)?,
        clock: Arc::new(SampleClock::start()?),
    };
    let selected = |measure| args.only.is_empty() || args.only.contains(&measure);
    let mut findings = BenchReport::default();
    let mut notes = vec![NOTE.to_owned()];

    if selected(Measure::Append) || selected(Measure::Rewrite) {
        let peers = Peers::start(&PEERS, &args.venv, &bench.create_folder("peers")?, &[]);
        notes.extend(peers.about());
        if selected(Measure::Append) {
            append::measure(&bench, &peers, &mut findings)?;
        }
        if selected(Measure::Rewrite) {
            rewrite::measure(&bench, &peers, &mut findings)?;
        }
    }
    if selected(Measure::Reads) {
        reads::measure(&bench, &mut findings)?;
    }
    if selected(Measure::Memory) {
        memory::measure(&bench, &mut findings)?;
    }
    if selected(Measure::Start) {
        start::measure(&bench, args.tl.as_deref(), &args.tl_args, &mut findings)?;
    }
    findings.publish(
        &args.output,
        &bench.machine,
        "The embedded store",
        "store",
        &notes,
    )
}

const NOTE: &str = "Messages are 634 bytes of text. Contenders alternate within each round; a \
                    figure is the median of the rounds, a ratio the median of the ratios \
                    within the rounds, with the lowest and highest in parentheses. Throughline \
                    acknowledges an append once it is synced to disk.";
