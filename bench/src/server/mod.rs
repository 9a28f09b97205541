//! Benchmarks the server against the engine it serves, and against a handler that stores
//! nothing.
//!
//! Client and servers share this machine: the client's cost is part of every figure but the
//! engine's. Each server has its own runtime.

pub(crate) mod append;
mod bench_server;
pub(crate) mod client;
mod events;
pub(crate) mod idle;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use crate::bench::Bench;
use crate::report::{BenchReport, OutputArgs};

/// Concurrent connections.
const CONNECTIONS: usize = 64;
/// Bytes of text in a message.
const TEXT_BYTES: usize = 634;

/// Benchmark the server
///
/// Appends and reads over HTTP with 64 connections, compared with calling the engine directly
/// and with a handler that stores nothing; event latency; idle memory.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The `tl` whose memory is measured [default: none, and it is not measured]
    #[arg(long, value_name = "PATH")]
    tl: Option<PathBuf>,
    /// Run only these measurements [default: all]
    #[arg(long, value_name = "MEASURE", value_delimiter = ',')]
    only: Vec<Measure>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Appends and reads
    Append,
    /// Event latency
    Events,
    /// Memory with many idle sessions
    Idle,
}

/// Returns the text of a message.
fn message_text() -> String {
    const WORDS: &str = "The build fails on the second step because the lock file names a \
                         version that is no longer there; pin the older one and try again. ";
    WORDS.chars().cycle().take(TEXT_BYTES).collect()
}

/// Runs the selected measurements.
pub(crate) fn run(args: &ServerArgs) -> Result<()> {
    let bench = Bench::prepare(&args.output, 300, 1_000)?;
    let selected = |measure| args.only.is_empty() || args.only.contains(&measure);
    let mut findings = BenchReport::default();
    if selected(Measure::Append) {
        append::measure(&bench, &mut findings)?;
    }
    if selected(Measure::Events) {
        events::measure(&bench, &mut findings)?;
    }
    if selected(Measure::Idle) {
        idle::measure(&bench, args.tl.as_deref(), &mut findings)?;
    }
    let notes = [NOTE.to_owned()];
    findings.publish(&args.output, &bench.machine, "The server", "server", &notes)
}

const NOTE: &str = "Messages are 634 bytes of text, one per request, each synced to disk \
                    before it is acknowledged. 64 connections of a plain HTTP/1.1 client on \
                    the same machine share the processors with the server. The upper limit is \
                    the same client with a handler that reads the same body and stores \
                    nothing. Event latency is measured from the acknowledgement of an append \
                    until the last reader has received its event.";
