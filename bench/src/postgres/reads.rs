//! Reads among many sessions: they should cost what they return, not what is there.

use anyhow::Result;
use throughline_model::Owner;

use super::{Bench, Findings};
use crate::figure::{Unit, digits, float};
use crate::reading::{PAGE, fill, list, tail};
use crate::rounds::{Contender, take_turns};
use crate::sample;
use crate::table::{Row, Target};

const FEW: u64 = 100;
const MANY: u64 = 100_000;
/// The entries of a long session.
const LONG: u64 = 10_000;

pub(super) fn measure(bench: &Bench<'_>, findings: &mut Findings) -> Result<()> {
    let store = bench.store()?;
    let many = MANY / bench.scale;
    let (here, there): (Owner, Owner) = ("many".parse()?, "few".parse()?);
    let (short, long) = bench.runtime.block_on(async {
        fill(&store, &bench.clock, &here, many).await?;
        fill(&store, &bench.clock, &there, FEW).await?;
        let short = sample::session(&*store, &bench.clock, &there, "short", FEW).await?;
        let long = sample::session(&*store, &bench.clock, &here, "long", LONG).await?;
        anyhow::Ok((short, long))
    })?;
    let on = &bench.runtime;
    let contenders = vec![
        Contender::new("a page of many", || list(on, &*store, &here)),
        Contender::new("a page of few", || list(on, &*store, &there)),
        Contender::new("the tail of a long one", || tail(on, &*store, &long)),
        Contender::new("the tail of a short one", || tail(on, &*store, &short)),
    ];
    let samples = take_turns(bench.pace.rounds, contenders)?;
    let listed = |count| format!("list {PAGE} of {} sessions", digits(float(count)));
    let among = digits(float(many));
    let read = |count| {
        format!(
            "last {PAGE} of {} entries, {among} sessions",
            digits(float(count))
        )
    };
    let rows = [
        (listed(many), listed(FEW), 0, 1),
        (read(LONG), read(FEW), 2, 3),
    ];
    for (ours, baseline, of, to) in rows {
        findings.row(
            Row::new(ours, Unit::Time, &samples[of])
                .against(baseline, &samples[to])
                .target(Target::AtMost(2.0)),
        );
    }
    Ok(())
}
