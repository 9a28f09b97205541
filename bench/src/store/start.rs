//! From the start of the process to its first line.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use throughline_model::Owner;
use throughline_store::Store;

use super::{Bench, Findings};
use crate::chart::Chart;
use crate::figure::Unit;
use crate::reading::fill;
use crate::rounds::{Contender, take_turns};
use crate::sample;
use crate::table::Row;

const SESSIONS: u64 = 10_000;
const RUNS: usize = 20;
const NAME: &str = "start to first line, 10,000 sessions";
const QUERY: &str = "SELECT id, name, last_activity, messages, preview FROM session \
                     WHERE owner = 1 AND trashed_at IS NULL AND gone = 0 AND status = 'active' \
                     ORDER BY last_activity DESC, id DESC LIMIT 20";

pub(super) fn measure(
    bench: &Bench,
    tl: Option<&Path>,
    words: &str,
    findings: &mut Findings,
) -> Result<()> {
    let Some(tl) = tl else {
        findings.row(Row::missing(NAME, "no --tl given"));
        return Ok(());
    };
    let sqlite = Command::new("sqlite3").arg("-version").output();
    if !sqlite.is_ok_and(|out| out.status.success()) {
        findings.row(Row::missing(NAME, "no sqlite3 on the path"));
        return Ok(());
    }
    let folder = bench.folder("start")?;
    let file = folder.join("store.db");
    let store: Arc<dyn Store> = Arc::new(sample::store(&folder, "store.db")?);
    let owner = Owner::local();
    let filled = fill(&store, &bench.clock, &owner, SESSIONS);
    bench.runtime.block_on(filled)?;
    drop(store);

    let words: Vec<_> = words
        .split_whitespace()
        .map(|word| word.replace("{store}", &file.to_string_lossy()))
        .collect();
    let contenders = vec![
        Contender::new("tl", || first_line(Command::new(tl).args(&words))),
        Contender::new("sqlite3", || {
            first_line(Command::new("sqlite3").arg(&file).arg(QUERY))
        }),
    ];
    let samples = take_turns(RUNS, contenders)?;
    findings.row(
        Row::new(NAME, Unit::Time, &samples[0]).against("sqlite3, the same query", &samples[1]),
    );
    let mut chart = Chart::new("Start to first line (shorter is better)", Unit::Time);
    chart.ours("tl sessions", &samples[0]);
    chart.other("sqlite3, the same query", &samples[1]);
    findings.chart(chart);
    Ok(())
}

fn first_line(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("starting it")?;
    let out = child.stdout.take().context("it has no output")?;
    let mut lines = BufReader::new(out).lines();
    let first = lines.next().transpose()?;
    let elapsed = start.elapsed().as_secs_f64();
    // The rest is read so that it ends by itself.
    lines.for_each(drop);
    let status = child.wait()?;
    ensure!(
        first.is_some() && status.success(),
        "it ended with {status}"
    );
    Ok(elapsed)
}
