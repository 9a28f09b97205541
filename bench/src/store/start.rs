//! Measures the time from the start of `tl` to its first line of output, compared with `sqlite3`
//! running the same query.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use throughline_model::Owner;
use throughline_store::Store;

use super::{Bench, BenchReport};
use crate::chart::Chart;
use crate::read_load::fill_sessions;
use crate::rounds::{Contender, run_rounds};
use crate::sample;
use crate::table::Row;
use crate::units::Unit;

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
    findings: &mut BenchReport,
) -> Result<()> {
    let Some(tl) = tl else {
        findings.add_row(Row::not_measured(NAME, "no --tl given"));
        return Ok(());
    };
    let sqlite = Command::new("sqlite3").arg("-version").output();
    if !sqlite.is_ok_and(|out| out.status.success()) {
        findings.add_row(Row::not_measured(NAME, "no sqlite3 on the path"));
        return Ok(());
    }
    let folder = bench.create_folder("start")?;
    let file = folder.join("store.db");
    let store: Arc<dyn Store> = Arc::new(sample::create_store(&folder, "store.db")?);
    let owner = Owner::local();
    let filled = fill_sessions(&store, &bench.clock, &owner, SESSIONS);
    bench.runtime.block_on(filled)?;
    drop(store);

    let words: Vec<_> = words
        .split_whitespace()
        .map(|word| word.replace("{store}", &file.to_string_lossy()))
        .collect();
    let contenders = vec![
        Contender::new("tl", || time_first_line(Command::new(tl).args(&words))),
        Contender::new("sqlite3", || {
            time_first_line(Command::new("sqlite3").arg(&file).arg(QUERY))
        }),
    ];
    let samples = run_rounds(RUNS, contenders)?;
    findings.add_row(
        Row::new(NAME, Unit::Time, &samples[0]).against("sqlite3, the same query", &samples[1]),
    );
    let mut chart = Chart::new("Start to first line (shorter is better)", Unit::Time);
    chart.add_ours("tl sessions", &samples[0]);
    chart.add_other("sqlite3, the same query", &samples[1]);
    findings.add_chart(chart);
    Ok(())
}

fn time_first_line(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("starting the program")?;
    let out = child.stdout.take().context("the program has no output")?;
    let mut lines = BufReader::new(out).lines();
    let first = lines.next().transpose()?;
    let elapsed = start.elapsed().as_secs_f64();
    // The rest is read so that the process exits normally.
    lines.for_each(drop);
    let status = child.wait()?;
    ensure!(
        first.is_some() && status.success(),
        "the program ended with {status}"
    );
    Ok(elapsed)
}
