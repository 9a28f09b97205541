//! The embedded store against what one would use instead.
//!
//! Real files on a real disk: a folder in memory would make every sync free and every
//! number meaningless, so the folder can be chosen and the report names its file system.

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

/// Measure the embedded store
///
/// Compares durable appends, reads, memory and disk with plain files and with other
/// session stores, which are installed from PyPI into a folder of their own.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    output: OutputArgs,
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

const PEERS: PeerScript = PeerScript {
    source: include_str!("peers.py"),
    packages: &["openai-agents", "langgraph-checkpoint-sqlite"],
    imports: "import agents, langgraph.checkpoint.sqlite",
};

/// Something a peer can be told to do.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[serde(tag = "work", rename_all = "snake_case")]
enum PeerTask {
    /// `SQLiteSession.add_items`, a message at a time.
    Session { writers: usize },
    /// `SqliteSaver.put` of a checkpoint with so many messages.
    Saver { messages: u64 },
}

/// What all measures share.
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

/// Runs the measures that are asked for.
pub(crate) fn run(args: &StoreArgs) -> Result<()> {
    let bench = Bench {
        run: crate::bench::Bench::prepare(&args.output, 200, 500)?,
        clock: Arc::new(SampleClock::start()?),
    };
    let wanted = |measure| args.only.is_empty() || args.only.contains(&measure);
    let mut findings = BenchReport::default();
    let mut notes = vec![NOTE.to_owned()];

    if wanted(Measure::Append) || wanted(Measure::Rewrite) {
        let peers = Peers::start(&PEERS, &args.venv, &bench.create_folder("peers")?, &[]);
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
    findings.publish(
        &args.output,
        &bench.machine,
        "The embedded store",
        "store",
        &notes,
    )
}

const NOTE: &str = "Messages are 634 bytes of text. Contenders take turns within each round; a \
                    figure is the median of the rounds, a ratio is the median of the rounds' own \
                    ratios, with the lowest and highest beside it. Throughline acknowledges an \
                    append once it is synced to the disk.";
