//! Benchmarks of Throughline: `cargo xtask bench`.
//!
//! Compared numbers are always measured within one run, on one disk, in alternating rounds:
//! absolute numbers vary with the machine and its load, ratios much less so. Results become rows
//! of a [`table`] and bars of a [`chart`].

mod append_load;
mod bench;
mod chart;
mod chat;
mod context;
mod import;
mod machine;
mod markdown;
mod peers;
mod postgres;
mod read_load;
mod recall;
mod report;
mod rounds;
mod sample;
mod server;
mod store;
mod svg;
mod table;
mod units;

use clap::{Parser, Subcommand};

/// Benchmark Throughline against the alternatives
#[derive(Debug, Parser)]
#[command(name = "throughline-bench")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Store(store::StoreArgs),
    Chat(chat::ChatArgs),
    Context(context::ContextArgs),
    Recall(recall::RecallArgs),
    Server(server::ServerArgs),
    Import(import::ImportArgs),
    Postgres(postgres::PostgresArgs),
    /// The child process of `store` whose memory is measured
    #[command(hide = true)]
    StoreMemory(store::memory::ChildArgs),
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Store(args) => store::run(&args),
        Command::Chat(args) => chat::run(&args),
        Command::Context(args) => context::run(&args),
        Command::Recall(args) => recall::run(&args),
        Command::Server(args) => server::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Postgres(args) => postgres::run(&args),
        Command::StoreMemory(args) => store::memory::run_child(&args),
    }
}
