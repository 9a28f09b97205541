//! Measures whether the time of a read depends on how many sessions and entries the embedded
//! store has: it should depend only on what is returned.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use throughline_model::Owner;
use throughline_store::Store;

use super::{Bench, BenchReport};
use crate::chart::Chart;
use crate::read_load::{PAGE, fill_sessions, time_list, time_tail};
use crate::rounds::{Contender, run_rounds};
use crate::sample;
use crate::table::{Row, Target};
use crate::units::{Unit, format_number, to_f64};

const FEW: u64 = 100;
const MANY: u64 = 100_000;

pub(super) fn measure(bench: &Bench, findings: &mut BenchReport) -> Result<()> {
    let folder = bench.create_folder("reads")?;
    let many = MANY / bench.scale;
    measure_tails(bench, &folder, many, findings)?;
    measure_lists(bench, &folder, many, findings)
}

fn measure_tails(
    bench: &Bench,
    folder: &Path,
    many: u64,
    findings: &mut BenchReport,
) -> Result<()> {
    let store = sample::create_store(folder, "entries.db")?;
    let owner = Owner::local();
    let (short, long) = bench.runtime.block_on(async {
        let short = sample::create_session(&store, &bench.clock, &owner, "short", FEW).await?;
        let long = sample::create_session(&store, &bench.clock, &owner, "long", many).await?;
        anyhow::Ok((short, long))
    })?;
    let contenders = vec![
        Contender::new("the tail of many", || {
            time_tail(&bench.runtime, &store, &long)
        }),
        Contender::new("the tail of few", || {
            time_tail(&bench.runtime, &store, &short)
        }),
    ];
    let samples = run_rounds(bench.pace.rounds, contenders)?;
    let of = |count| format!("last {PAGE} of {} entries", format_number(to_f64(count)));
    findings.add_row(
        Row::new(of(many), Unit::Time, &samples[0])
            .against(of(FEW), &samples[1])
            .target(Target::AtMost(2.0)),
    );
    let mut chart = Chart::new(
        "Reading the end of a session (shorter is better)",
        Unit::Time,
    );
    chart.add_ours(of(FEW), &samples[1]);
    chart.add_ours(of(many), &samples[0]);
    findings.add_chart(chart);
    Ok(())
}

fn measure_lists(
    bench: &Bench,
    folder: &Path,
    many: u64,
    findings: &mut BenchReport,
) -> Result<()> {
    let small: Arc<dyn Store> = Arc::new(sample::create_store(folder, "few.db")?);
    let large: Arc<dyn Store> = Arc::new(sample::create_store(folder, "many.db")?);
    let owner = Owner::local();
    for (store, count) in [(&small, FEW), (&large, many)] {
        let filled = fill_sessions(store, &bench.clock, &owner, count);
        bench.runtime.block_on(filled)?;
    }
    let contenders = vec![
        Contender::new("a page of many", || {
            time_list(&bench.runtime, &*large, &owner)
        }),
        Contender::new("a page of few", || {
            time_list(&bench.runtime, &*small, &owner)
        }),
    ];
    let samples = run_rounds(bench.pace.rounds, contenders)?;
    let of = |count| format!("list {PAGE} of {} sessions", format_number(to_f64(count)));
    findings.add_row(
        Row::new(of(many), Unit::Time, &samples[0])
            .against(of(FEW), &samples[1])
            .target(Target::AtMost(2.0)),
    );
    let mut chart = Chart::new("Listing sessions (shorter is better)", Unit::Time);
    chart.add_ours(of(FEW), &samples[1]);
    chart.add_ours(of(many), &samples[0]);
    findings.add_chart(chart);
    Ok(())
}
