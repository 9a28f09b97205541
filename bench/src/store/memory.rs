//! Measures memory and disk usage while a long session grows.
//!
//! The store runs in a child process, so that nothing else contributes to the measured memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use throughline_model::Owner;
use throughline_store::LogStore;

use super::{Bench, BenchReport};
use crate::chart::Chart;
use crate::rounds::Samples;
use crate::sample;
use crate::table::{Row, Target};
use crate::units::{Unit, format_number, to_f64};

const ENTRIES: u64 = 1_000_000;
const BATCH: u64 = 1_000;
/// Entries during which SQLite's cache is still filling, which is expected.
const WARMUP_ENTRIES: u64 = 50_000;
/// The largest ratio of the last sample to the first that counts as flat.
const MAX_GROWTH: f64 = 1.1;

/// The arguments of the child process.
#[derive(Debug, clap::Args)]
pub(crate) struct ChildArgs {
    dir: PathBuf,
    entries: u64,
}

/// One sample of the child's memory.
#[derive(Serialize, Deserialize)]
struct Sample {
    entries: u64,
    resident: f64,
    /// Bytes of the database file and its write-ahead log.
    stored: f64,
}

pub(super) fn measure(bench: &Bench, findings: &mut BenchReport) -> Result<()> {
    let folder = bench.create_folder("memory")?;
    let entries = ENTRIES / bench.scale;
    let out = Command::new(std::env::current_exe()?)
        .arg("store-memory")
        .arg(&folder)
        .arg(entries.to_string())
        .output()
        .context("starting the child process")?;
    ensure!(
        out.status.success(),
        "the child process failed: {}",
        String::from_utf8_lossy(&out.stderr).trim()
    );
    let samples = String::from_utf8(out.stdout)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Sample>, _>>()?;
    let mut chart = Chart::new("Memory while a session grows (resident)", Unit::Bytes);
    for sample in &samples {
        let label = format!("{} entries", format_number(to_f64(sample.entries)));
        chart.add_ours(label, &Samples(vec![sample.resident]));
    }
    findings.add_chart(chart);
    let settled = samples
        .iter()
        .find(|sample| sample.entries >= WARMUP_ENTRIES);
    let (Some(first), Some(last)) = (settled, samples.last()) else {
        findings.add_row(Row::not_measured(
            "memory while appending",
            "too few entries",
        ));
        return Ok(());
    };
    let at = |sample: &Sample| {
        format!(
            "memory after {} entries",
            format_number(to_f64(sample.entries))
        )
    };
    findings.add_row(
        Row::new(at(last), Unit::Bytes, &Samples(vec![last.resident]))
            .against(at(first), &Samples(vec![first.resident]))
            .target(Target::AtMost(MAX_GROWTH)),
    );
    let text = to_f64(last.entries * sample::TEXT_BYTES as u64);
    let line = to_f64(sample::jsonl_line(&bench.clock)?.len() as u64);
    findings.add_row(
        Row::new(
            "bytes on disk per byte of text",
            Unit::Number,
            &Samples(vec![last.stored / text]),
        )
        .against(
            "as lines of JSON",
            &Samples(vec![line / to_f64(sample::TEXT_BYTES as u64)]),
        ),
    );
    Ok(())
}

/// Appends to one session and prints ten memory samples on the way.
pub(crate) fn run_child(args: &ChildArgs) -> Result<()> {
    let clock = sample::SampleClock::start()?;
    let text = sample::message_text();
    let store = sample::create_store(&args.dir, "store.db")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let session = sample::create_session(&store, &clock, &Owner::local(), "grows", 0).await?;
        let step = (args.entries / 10).max(BATCH);
        let mut entries = 0;
        while entries < args.entries {
            store
                .append(&session, clock.messages(&text, BATCH)?)
                .await?;
            entries += BATCH;
            if entries % step == 0 {
                let sample = Sample {
                    entries,
                    resident: resident_bytes()?,
                    stored: stored_bytes(&args.dir)?,
                };
                println!("{}", serde_json::to_string(&sample)?);
            }
        }
        Ok(())
    })
}

/// Returns this process's resident memory in bytes.
fn resident_bytes() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = kib.context("no VmRSS in /proc/self/status")?.parse()?;
    Ok(to_f64(kib * 1024))
}

fn stored_bytes(dir: &Path) -> Result<f64> {
    let size = |name| fs::metadata(dir.join(name)).map_or(0, |file| file.len());
    let bytes = size("store.db") + size("store.db-wal");
    ensure!(bytes > 0, "the store has no file");
    Ok(to_f64(bytes))
}
