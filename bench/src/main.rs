//! Measurements, made so that they can be believed.
//!
//! Every number that is compared is compared within one run, on one disk, in rounds
//! that take turns: machines are shared and differ, ratios much less so. What a
//! measure finds becomes rows of a [`table`] and bars of a [`chart`].

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

/// Measure Throughline against what one would use instead
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
    /// The child of `store` whose memory is watched
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
