//! The server against the engine it serves, and against one that does nothing.
//!
//! Client and servers share this machine: what the client costs is part of every figure
//! but the engine's own. Each server has a runtime of its own.

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

/// Connections at once.
const CONNECTIONS: usize = 64;
/// The bytes of text in a message.
const TEXT_BYTES: usize = 634;

/// Measure the server
///
/// Appends and reads over HTTP with 64 connections, against the engine called directly and
/// against a handler that stores nothing; how long events take; memory at rest.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The `tl` whose memory is watched [default: none, and it is not measured]
    #[arg(long, value_name = "PATH")]
    tl: Option<PathBuf>,
    /// Only these [default: all]
    #[arg(long, value_name = "MEASURE", value_delimiter = ',')]
    only: Vec<Measure>,
}

/// One of the things that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// Appends and reads
    Append,
    /// How long an event takes to everybody
    Events,
    /// Memory with many sessions at rest
    Idle,
}

/// A message's text.
fn message_text() -> String {
    const WORDS: &str = "The build fails on the second step because the lock file names a \
                         version that is no longer there; pin the older one and try again. ";
    WORDS.chars().cycle().take(TEXT_BYTES).collect()
}

/// Runs the measures that are asked for.
pub(crate) fn run(args: &ServerArgs) -> Result<()> {
    let bench = Bench::prepare(&args.output, 300, 1_000)?;
    let wanted = |measure| args.only.is_empty() || args.only.contains(&measure);
    let mut findings = BenchReport::default();
    if wanted(Measure::Append) {
        append::measure(&bench, &mut findings)?;
    }
    if wanted(Measure::Events) {
        events::measure(&bench, &mut findings)?;
    }
    if wanted(Measure::Idle) {
        idle::measure(&bench, args.tl.as_deref(), &mut findings)?;
    }
    let notes = [NOTE.to_owned()];
    findings.publish(&args.output, &bench.machine, "The server", "server", &notes)
}

const NOTE: &str = "Messages are 634 bytes of text, one a request, each synced to the disk before it \
                    is acknowledged. 64 connections of a plain HTTP/1.1 client on the same machine \
                    share the processors with the server. The limit is the same client against a \
                    handler that reads the same body and stores nothing. A delay is from the moment \
                    an append is acknowledged until the last reader has its event.";
