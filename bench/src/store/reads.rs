//! Reads through the trait, warm: they should cost what they return, not what is there.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use throughline_model::Owner;
use throughline_store::Store;

use super::{Bench, Findings};
use crate::chart::Chart;
use crate::figure::{Unit, digits, float};
use crate::reading::{PAGE, fill, list, tail};
use crate::rounds::{Contender, take_turns};
use crate::sample;
use crate::table::{Row, Target};

const FEW: u64 = 100;
const MANY: u64 = 100_000;

pub(super) fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let folder = bench.folder("reads")?;
    let many = MANY / bench.scale;
    tails(bench, &folder, many, findings)?;
    lists(bench, &folder, many, findings)
}

fn tails(bench: &Bench, folder: &Path, many: u64, findings: &mut Findings) -> Result<()> {
    let store = sample::store(folder, "entries.db")?;
    let owner = Owner::local();
    let (short, long) = bench.runtime.block_on(async {
        let short = sample::session(&store, &bench.clock, &owner, "short", FEW).await?;
        let long = sample::session(&store, &bench.clock, &owner, "long", many).await?;
        anyhow::Ok((short, long))
    })?;
    let contenders = vec![
        Contender::new("the tail of many", || tail(&bench.runtime, &store, &long)),
        Contender::new("the tail of few", || tail(&bench.runtime, &store, &short)),
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

fn lists(bench: &Bench, folder: &Path, many: u64, findings: &mut Findings) -> Result<()> {
    let small: Arc<dyn Store> = Arc::new(sample::store(folder, "few.db")?);
    let large: Arc<dyn Store> = Arc::new(sample::store(folder, "many.db")?);
    let owner = Owner::local();
    for (store, count) in [(&small, FEW), (&large, many)] {
        let filled = fill(store, &bench.clock, &owner, count);
        bench.runtime.block_on(filled)?;
    }
    let contenders = vec![
        Contender::new("a page of many", || list(&bench.runtime, &*large, &owner)),
        Contender::new("a page of few", || list(&bench.runtime, &*small, &owner)),
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
