//! Recall: what search finds, and how fast.

mod corpus;
mod fts5;
mod locomo;
mod quality;
mod speed;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::chart::Chart;
use crate::machine::Machine;
use crate::table::{Row, Table};
use crate::{markdown, svg};

use quality::{DEPTHS, Recall};

/// Measure recall
///
/// Evidence recall on conversations with questions, where some are given; and the speed
/// and size of search over many messages, against SQLite's full text and `rg`.
#[derive(Debug, clap::Args)]
pub(crate) struct RecallArgs {
    /// Conversations with questions, as LoCoMo has them [default: none, and what is found
    /// is not measured]
    #[arg(long, value_name = "FILE")]
    locomo: Option<PathBuf>,
    /// The folder of a contextual model [default: none, and what it adds is not measured]
    #[arg(long, value_name = "DIR")]
    contextual: Option<PathBuf>,
    /// How many messages to search
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    messages: u64,
    /// A tenth of the messages
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
}

/// What the measures add to the report.
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
}

/// Runs all measures.
pub(crate) fn run(args: &RecallArgs) -> Result<()> {
    fs::create_dir_all(&args.dir).with_context(|| format!("making {}", args.dir.display()))?;
    let dir = tempfile::Builder::new()
        .prefix("throughline-bench-")
        .tempdir_in(&args.dir)?;
    let machine = Machine::of(dir.path())?;
    let mut notes = Vec::new();
    if let Some(path) = &args.locomo {
        let conversations = locomo::read(path)?;
        let recalls = quality::measure(dir.path(), &conversations, args.contextual.as_deref())?;
        let asked: usize = conversations.iter().map(|one| one.questions.len()).sum();
        let table = quality_table(&recalls);
        println!("{table}");
        notes.push(format!(
            "Evidence recall on {} conversations of LoCoMo with {asked} questions (categories 1–4: \
             multi-hop, temporal, open-domain, single-hop): the share of the turns that answer a \
             question among the first 5, 10 and 20 hits. Weights are fixed in the code. Every \
             conversation is an index of its own.\n\n{table}",
            conversations.len(),
        ));
    }
    let messages = if args.quick {
        args.messages / 10
    } else {
        args.messages
    };
    let mut findings = Findings::default();
    if messages > 0 {
        notes.push(SPEED_NOTE.to_owned());
        speed::measure(dir.path(), messages, &mut findings)?;
    }
    report(args, &machine, &notes, &findings)
}

const SPEED_NOTE: &str = "Messages are 100 made-up words whose frequencies fall as those of real \
                          words do, in sessions of 50; questions are six of the rarer words of \
                          one message. SQLite's full text is asked for any of the words, best 20. \
                          It has the text once; our index has each passage's words also in the \
                          documents of those around it, and a vector of 260 bytes.";

/// What was found, as a table.
fn quality_table(recalls: &[Recall]) -> String {
    let mut text = String::from("| ranked by |");
    for depth in DEPTHS {
        let _ = write!(text, " @{depth} |");
    }
    text.push_str(" 1 @10 | 2 @10 | 3 @10 | 4 @10 |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for recall in recalls {
        let _ = write!(text, "| {} |", recall.name);
        for share in recall.at {
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

fn report(
    args: &RecallArgs,
    machine: &Machine,
    notes: &[String],
    findings: &Findings,
) -> Result<()> {
    println!("{}", findings.table);
    for chart in &findings.charts {
        println!("{}\n{}\n", chart.title, chart.lines().join("\n"));
    }
    if let Some(file) = &args.svg {
        fs::write(file, svg::draw(&findings.charts))?;
    }
    if let Some(file) = &args.markdown {
        let quick = if args.quick { " --quick" } else { "" };
        let picture = args.svg.as_deref().and_then(Path::file_name);
        let section = markdown::section(
            "What search finds, and how fast",
            &format!("cargo xtask bench recall{quick} --locomo PATH"),
            machine,
            notes,
            &findings.table,
            &findings.charts,
            picture.map(|name| name.to_string_lossy()).as_deref(),
        );
        fs::write(file, section)?;
    }
    Ok(())
}
