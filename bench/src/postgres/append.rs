//! Measures durable appends to PostgreSQL, over one connection and over many.

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Bench, BenchReport};
use crate::append_load::AppendLoad;
use crate::chart::Chart;
use crate::peers::Peers;
use crate::rounds::{Contender, Samples, run_rounds};
use crate::table::{Row, Target};
use crate::units::Unit;

const WRITERS: [usize; 3] = [1, 16, 64];

/// A task for a peer.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "work", rename_all = "snake_case")]
enum PeerTask {
    /// `SQLAlchemySession.add_items`, a message at a time.
    Session { writers: usize },
    /// `AsyncPostgresSaver.aput` of a checkpoint with a hundred messages.
    Saver { writers: usize },
}

pub(super) fn measure(bench: &Bench<'_>, peers: &Peers, findings: &mut BenchReport) -> Result<()> {
    let mut chart = Chart::new("Durable appends in PostgreSQL", Unit::Rate);
    for writers in WRITERS {
        let name = match writers {
            1 => "durable append, 1 writer".to_owned(),
            many => format!("durable append, {many} writers"),
        };
        let mut samples = collect_samples(bench, peers, writers)?.into_iter();
        let ours = samples.next().context("no samples of ours")?;
        let bare = samples.next().context("no samples of pgbench")?;
        let row = || Row::new(&name, Unit::Rate, &ours);
        findings.add_row(
            row()
                .against("pgbench, a bare insert", &bare)
                .target(Target::AtLeast(0.5)),
        );
        chart.add_ours(format!("Throughline, {writers}"), &ours);
        chart.add_other(format!("pgbench, {writers}"), &bare);
        for peer in [
            "openai-agents SQLAlchemySession",
            "LangGraph AsyncPostgresSaver",
        ] {
            findings.add_row(match samples.next() {
                Some(theirs) => {
                    chart.add_other(format!("{peer}, {writers}"), &theirs);
                    row().against(peer, &theirs)
                }
                None => Row::not_measured(format!("{name}, {peer}"), peers.unavailable_reason()),
            });
        }
    }
    findings.add_chart(chart);
    Ok(())
}

fn collect_samples(bench: &Bench<'_>, peers: &Peers, writers: usize) -> Result<Vec<Samples>> {
    let slice = bench.pace.slice;
    let ours = AppendLoad::new(bench.store()?, &bench.clock, writers);
    let ours = bench.runtime.block_on(ours)?;
    let mut contenders = vec![
        Contender::new("Throughline", || {
            ours.run(&bench.runtime, &bench.clock, slice)
        }),
        Contender::new("pgbench", || {
            bench
                .database
                .measure_bare_inserts(&bench.dir, writers, slice)
        }),
    ];
    if peers.are_available() {
        contenders.push(Contender::new("SQLAlchemySession", || {
            peers.measure_rate(&PeerTask::Session { writers }, slice)
        }));
        contenders.push(Contender::new("AsyncPostgresSaver", || {
            peers.measure_rate(&PeerTask::Saver { writers }, slice)
        }));
    }
    run_rounds(bench.pace.rounds, contenders)
}
