//! Benchmarks the PostgreSQL store against pgbench and against other session stores.
//!
//! Everything runs on one server with one set of settings, in a temporary database.

mod append;
mod database;
mod multi_server;
mod reads;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::Store;
use tokio::runtime::Runtime;

use crate::machine::Machine;
use crate::peers::{PeerScript, Peers};
use crate::report::{BenchReport, OutputArgs};
use crate::rounds::RoundOptions;
use crate::sample::SampleClock;
use database::BenchDatabase;

/// Benchmark the PostgreSQL store
///
/// Durable appends compared with pgbench, which runs a bare insert, and with other session
/// stores on the same server; reads among many sessions; several servers over one database.
#[derive(Debug, clap::Args)]
pub(crate) struct PostgresArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The URL of a server on which databases may be created and dropped
    #[arg(long, value_name = "URL")]
    server: String,
    /// The folder of its programs: psql and pgbench
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,
    /// Where to install the Python peers; reused by later runs
    #[arg(long, value_name = "DIR", default_value = "target/bench-postgres-venv")]
    venv: PathBuf,
    /// The `tl` that serves [default: none, and multiple servers are not measured]
    #[arg(long, value_name = "PATH")]
    tl: Option<PathBuf>,
    /// Run only these measurements [default: all]
    #[arg(long, value_name = "MEASURE", value_delimiter = ',')]
    only: Vec<Measure>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Durable appends
    Append,
    /// Reading the tail, listing sessions
    Reads,
    /// Several servers over one database
    Servers,
}

const PEERS: PeerScript = PeerScript {
    source: include_str!("peers.py"),
    packages: &[
        "openai-agents[sqlalchemy]",
        "asyncpg",
        "langgraph-checkpoint-postgres",
        "psycopg[binary,pool]",
    ],
    imports: "import asyncpg, psycopg_pool, agents.extensions.memory.sqlalchemy_session, \
              langgraph.checkpoint.postgres.aio",
};

/// What all measurements share.
struct Bench<'a> {
    dir: PathBuf,
    pace: RoundOptions,
    /// Divisor for the size of large workloads.
    scale: u64,
    clock: Arc<SampleClock>,
    runtime: Runtime,
    database: &'a BenchDatabase,
}

impl Bench<'_> {
    /// Opens the store in the database.
    fn store(&self) -> Result<Arc<dyn Store>> {
        let store = PostgresStore::open(self.database.url(), Options::default());
        Ok(Arc::new(self.runtime.block_on(store)?))
    }
}

/// Runs the selected measurements.
pub(crate) fn run(args: &PostgresArgs) -> Result<()> {
    let dir = args.output.create_temp_folder()?;
    let (rounds, millis, scale) = if args.output.quick {
        (2, 1_000, 20)
    } else {
        (5, 1_000, 1)
    };
    let server = BenchDatabase::new(&args.server, &args.programs)?;
    let bench = Bench {
        dir: dir.path().to_owned(),
        pace: RoundOptions {
            rounds,
            slice: Duration::from_millis(millis),
        },
        scale,
        clock: Arc::new(SampleClock::start()?),
        runtime: tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?,
        database: &server,
    };
    let machine = Machine::detect(dir.path())?;
    eprintln!("On {machine}.");
    let selected = |measure| args.only.is_empty() || args.only.contains(&measure);
    let mut findings = BenchReport::default();
    let mut notes = vec![NOTE.to_owned(), server.describe_settings()?];
    if selected(Measure::Append) {
        let url = server.url();
        let peers = Peers::start(&PEERS, &args.venv, dir.path(), &[url]);
        notes.extend(peers.about());
        append::measure(&bench, &peers, &mut findings)?;
    }
    if selected(Measure::Reads) {
        reads::measure(&bench, &mut findings)?;
    }
    if selected(Measure::Servers) {
        multi_server::measure(&bench, args.tl.as_deref(), &mut findings)?;
    }
    findings.publish(&args.output, &machine, "In PostgreSQL", "postgres", &notes)
}

const NOTE: &str = "Messages are 634 bytes of text. The database, the programs that write to \
                    it and pgbench share this machine. pgbench runs, over as many connections, \
                    one prepared statement that inserts a row with a number and the same text, \
                    and commits; Throughline's figure is a complete append to a session, from \
                    as many tasks. Contenders alternate within each round of one second each; \
                    a figure is the median of the rounds, a ratio the median of the ratios \
                    within the rounds.";
