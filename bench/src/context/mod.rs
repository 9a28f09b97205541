//! Benchmarks requests: what building one costs, and how many tokens it saves.

mod cost;
mod turns;

use anyhow::Result;

use crate::machine::Machine;
use crate::report::{BenchReport, OutputArgs};
use crate::svg;

/// Benchmark requests
///
/// Builds requests on short and very long sessions, and follows a conversation of many turns
/// under every policy, compared with sending everything each time.
#[derive(Debug, clap::Args)]
pub(crate) struct ContextArgs {
    #[command(flatten)]
    output: OutputArgs,
}

const NOTE: &str = "Requests have at most 8,000 tokens (o200k). The conversation alternates \
                    questions of about 30 tokens and answers of about 150; the extractive \
                    summarizer does the compaction. Tokens sent are estimated with the same \
                    tokenizer.";

/// Runs all measurements.
pub(crate) fn run(args: &ContextArgs) -> Result<()> {
    let dir = args.output.create_temp_folder()?;
    let scale = if args.output.quick { 10 } else { 1 };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let machine = Machine::detect(dir.path())?;
    let mut findings = BenchReport::default();
    cost::measure(&runtime, dir.path(), scale, &mut findings)?;
    let lines = turns::measure(&runtime, scale, &mut findings)?;
    findings.set_picture(svg::render_lines(
        "Tokens sent, turn by turn",
        "turn",
        &lines,
    ));
    let notes = [NOTE.to_owned()];
    let title = "What the model is sent";
    findings.publish(&args.output, &machine, title, "context", &notes)
}
