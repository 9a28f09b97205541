//! Measures whether the time of a read depends on how many sessions and entries PostgreSQL
//! stores: it should depend only on what is returned.

use anyhow::Result;
use throughline_model::Owner;

use super::{Bench, BenchReport};
use crate::read_load::{PAGE, fill_sessions, time_list, time_tail};
use crate::rounds::{Contender, run_rounds};
use crate::sample;
use crate::table::{Row, Target};
use crate::units::{Unit, format_number, to_f64};

const FEW: u64 = 100;
const MANY: u64 = 100_000;
/// Entries of a long session.
const LONG: u64 = 10_000;

pub(super) fn measure(bench: &Bench<'_>, findings: &mut BenchReport) -> Result<()> {
    let store = bench.store()?;
    let many = MANY / bench.scale;
    let (here, there): (Owner, Owner) = ("many".parse()?, "few".parse()?);
    let (short, long) = bench.runtime.block_on(async {
        fill_sessions(&store, &bench.clock, &here, many).await?;
        fill_sessions(&store, &bench.clock, &there, FEW).await?;
        let short = sample::create_session(&*store, &bench.clock, &there, "short", FEW).await?;
        let long = sample::create_session(&*store, &bench.clock, &here, "long", LONG).await?;
        anyhow::Ok((short, long))
    })?;
    let on = &bench.runtime;
    let contenders = vec![
        Contender::new("a page of many", || time_list(on, &*store, &here)),
        Contender::new("a page of few", || time_list(on, &*store, &there)),
        Contender::new("the tail of a long one", || time_tail(on, &*store, &long)),
        Contender::new("the tail of a short one", || time_tail(on, &*store, &short)),
    ];
    let samples = run_rounds(bench.pace.rounds, contenders)?;
    let listed = |count| format!("list {PAGE} of {} sessions", format_number(to_f64(count)));
    let among = format_number(to_f64(many));
    let read = |count| {
        format!(
            "last {PAGE} of {} entries, {among} sessions",
            format_number(to_f64(count))
        )
    };
    let rows = [
        (listed(many), listed(FEW), 0, 1),
        (read(LONG), read(FEW), 2, 3),
    ];
    for (ours, baseline, of, to) in rows {
        findings.add_row(
            Row::new(ours, Unit::Time, &samples[of])
                .against(baseline, &samples[to])
                .target(Target::AtMost(2.0)),
        );
    }
    Ok(())
}
