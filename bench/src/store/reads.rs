//! Reads through the trait, warm: they should cost what they return, not what is there.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use throughline_model::{Owner, SessionRef};
use throughline_sqlite::SqliteStore;
use throughline_store::{Catalog, Filter, LogStore, Read};
use tokio::task::JoinSet;

use super::{Bench, Findings, sample};
use crate::chart::Chart;
use crate::figure::{Unit, digits, float};
use crate::rounds::{Contender, take_turns};
use crate::table::{Row, Target};

const FEW: u64 = 100;
const MANY: u64 = 100_000;
/// How much is read at once.
const PAGE: usize = 50;
/// How often in each round.
const READS: u32 = 500;

pub(super) fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let folder = bench.folder("reads")?;
    let many = MANY / bench.scale;
    tails(bench, &folder, many, findings)?;
    lists(bench, &folder, many, findings)
}

fn tails(bench: &Bench, folder: &Path, many: u64, findings: &mut Findings) -> Result<()> {
    let store = sample::store(folder, "entries.db")?;
    let (short, long) = bench.runtime.block_on(async {
        let short = sample::session(&store, &bench.clock, "short", FEW).await?;
        let long = sample::session(&store, &bench.clock, "long", many).await?;
        anyhow::Ok((short, long))
    })?;
    let contenders = vec![
        Contender::new("the tail of many", || tail(bench, &store, &long)),
        Contender::new("the tail of few", || tail(bench, &store, &short)),
    ];
    let samples = take_turns(bench.pace.rounds, contenders)?;
    let of = |count| format!("last {PAGE} of {} entries", digits(float(count)));
    findings.row(
        Row::new(of(many), Unit::Time, &samples[0])
            .against(of(FEW), &samples[1])
            .target(Target::AtMost(2.0)),
    );
    let mut chart = Chart::new(
        "Reading the end of a session (shorter is better)",
        Unit::Time,
    );
    chart.ours(of(FEW), &samples[1]);
    chart.ours(of(many), &samples[0]);
    findings.chart(chart);
    Ok(())
}

fn tail(bench: &Bench, store: &SqliteStore, session: &SessionRef) -> Result<f64> {
    bench.runtime.block_on(async {
        let start = Instant::now();
        for _ in 0..READS {
            let entries = store.read(session, Read::tail(PAGE)).await?;
            ensure!(entries.len() == PAGE, "a short tail");
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(READS))
    })
}

fn lists(bench: &Bench, folder: &Path, many: u64, findings: &mut Findings) -> Result<()> {
    let small = sample::store(folder, "few.db")?;
    let large = sample::store(folder, "many.db")?;
    bench.runtime.block_on(fill(bench, &small, FEW))?;
    bench.runtime.block_on(fill(bench, &large, many))?;
    let contenders = vec![
        Contender::new("a page of many", || list(bench, &large)),
        Contender::new("a page of few", || list(bench, &small)),
    ];
    let samples = take_turns(bench.pace.rounds, contenders)?;
    let of = |count| format!("list {PAGE} of {} sessions", digits(float(count)));
    findings.row(
        Row::new(of(many), Unit::Time, &samples[0])
            .against(of(FEW), &samples[1])
            .target(Target::AtMost(2.0)),
    );
    let mut chart = Chart::new("Listing sessions (shorter is better)", Unit::Time);
    chart.ours(of(FEW), &samples[1]);
    chart.ours(of(many), &samples[0]);
    findings.chart(chart);
    Ok(())
}

fn list(bench: &Bench, store: &SqliteStore) -> Result<f64> {
    let (owner, filter) = (Owner::local(), Filter::default());
    bench.runtime.block_on(async {
        let start = Instant::now();
        for _ in 0..READS {
            let page = store.list(&owner, &filter, None, PAGE).await?;
            ensure!(page.items.len() == PAGE, "a short page");
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(READS))
    })
}

/// Makes so many sessions with a message each, many at a time to share syncs.
pub(super) async fn fill(bench: &Bench, store: &SqliteStore, sessions: u64) -> Result<()> {
    const AT_ONCE: u64 = 100;
    let mut tasks = JoinSet::new();
    for first in 0..AT_ONCE {
        let (store, clock) = (store.clone(), Arc::clone(&bench.clock));
        tasks.spawn(async move {
            for n in (first..sessions).step_by(usize::try_from(AT_ONCE)?) {
                sample::session(&store, &clock, &format!("session-{n}"), 1).await?;
            }
            anyhow::Ok(())
        });
    }
    tasks.join_all().await.into_iter().collect()
}
