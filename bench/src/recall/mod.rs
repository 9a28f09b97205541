//! Benchmarks recall: the quality and the speed of search.

mod corpus;
mod coverage;
mod fts5;
mod locomo;
mod postgres_index;
mod quality;
mod requests;
mod speed;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;

use crate::machine::Machine;
use crate::report::{BenchReport, OutputArgs};

use coverage::{BUDGETS, Coverage};
use quality::{DEPTHS, RecallScore};

/// Benchmark recall
///
/// Evidence recall on conversations with questions, if some are given; and the speed and size
/// of search over many messages, compared with SQLite's full-text search and `rg`.
#[derive(Debug, clap::Args)]
pub(crate) struct RecallArgs {
    /// A LoCoMo file of conversations with questions [default: none, and quality is not
    /// measured]
    #[arg(long, value_name = "FILE")]
    locomo: Option<PathBuf>,
    /// The folder of a contextual model [default: none, and it is not measured]
    #[arg(long, value_name = "DIR")]
    contextual: Option<PathBuf>,
    /// An empty PostgreSQL database whose index is measured too [default: none]
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// How many messages to search
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    messages: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs all measurements.
pub(crate) fn run(args: &RecallArgs) -> Result<()> {
    let dir = args.output.create_temp_folder()?;
    let machine = Machine::detect(dir.path())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut notes = Vec::new();
    if let Some(path) = &args.locomo {
        let conversations = locomo::read_conversations(path)?;
        let tables = args.postgres.as_deref();
        let tables = tables.map(|url| postgres_index::BlockingPostgresIndex::open(url, dir.path()));
        let tables = tables.transpose()?;
        let recalls = quality::measure(
            dir.path(),
            &conversations,
            args.contextual.as_deref(),
            tables.as_ref(),
        )?;
        let asked: usize = conversations.iter().map(|one| one.questions.len()).sum();
        let table = render_quality(&recalls);
        println!("{table}");
        notes.push(format!(
            "Evidence recall on {} conversations of LoCoMo with {asked} questions (categories 1–4: \
             multi-hop, temporal, open-domain, single-hop): the share of the turns that answer a \
             question among the first 5, 10 and 20 hits. Weights are fixed in the code. Every \
             conversation has its own index.\n\n{table}",
            conversations.len(),
        ));
        let coverage = runtime.block_on(coverage::measure(dir.path(), &conversations))?;
        let table = render_coverage(&coverage);
        println!("{table}");
        notes.push(format!(
            "Request coverage on the same conversations: the share of questions for which every \
             turn of the evidence is in the request, word for word. Each policy gets the history \
             laid out as its system would: the first in a new session of the same project, the \
             others in one session with the whole conversation, compacted by the extractive \
             summarizer as the policy says, or in one that continues from the last summary.\n\n{table}"
        ));
    }
    let scale = if args.output.quick { 10 } else { 1 };
    let mut findings = BenchReport::default();
    if args.messages > 0 {
        notes.push(SPEED_NOTE.to_owned());
        speed::measure(dir.path(), args.messages / scale, &mut findings)?;
        requests::measure(
            &runtime,
            dir.path(),
            REQUEST_MESSAGES / scale,
            &mut findings,
        )?;
    }
    let title = "What search finds, and how fast";
    findings.publish(
        &args.output,
        &machine,
        title,
        "recall --locomo PATH",
        &notes,
    )
}

/// Messages in the project that requests are built in.
const REQUEST_MESSAGES: u64 = 100_000;

const SPEED_NOTE: &str = "Messages are 100 generated words with natural word frequencies, in \
                          sessions of 50; queries are six of the rarer words of one message. \
                          SQLite's full-text search (FTS5) is queried for any of the words, \
                          best 20. It stores the text once; our index also stores each \
                          passage's words in the documents of the passages around it, and a \
                          vector of 260 bytes.";

/// Renders the quality scores as a table.
fn render_quality(recalls: &[RecallScore]) -> String {
    let mut text = String::from("| ranked by |");
    for depth in DEPTHS {
        let _ = write!(text, " @{depth} |");
    }
    text.push_str(" 1 @10 | 2 @10 | 3 @10 | 4 @10 |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for recall in recalls {
        let _ = write!(text, "| {} |", recall.name);
        for share in recall.shares {
            let _ = write!(text, " {share:.3} |");
        }
        for category in 1..=4 {
            let share = recall.by_category.get(&category);
            let share = share.map_or(String::new(), |share| format!("{share:.3}"));
            let _ = write!(text, " {share} |");
        }
        text.push('\n');
    }
    text
}

fn render_coverage(coverage: &[Coverage]) -> String {
    let [small, large] = BUDGETS;
    let mut text = format!("| request | {small} tokens | {large} tokens |\n|---|--:|--:|\n");
    for one in coverage {
        let [small, large] = one.shares;
        let _ = writeln!(text, "| {} | {small:.3} | {large:.3} |", one.name);
    }
    text
}
