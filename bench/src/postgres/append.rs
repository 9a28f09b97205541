//! Durable appends, from one connection and from many.

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Bench, Findings};
use crate::appending::Appending;
use crate::chart::Chart;
use crate::figure::Unit;
use crate::peers::Peers;
use crate::rounds::{Contender, Samples, take_turns};
use crate::table::{Row, Target};

const WRITERS: [usize; 3] = [1, 16, 64];

/// Something a peer can be told to do.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "work", rename_all = "snake_case")]
enum Work {
    /// `SQLAlchemySession.add_items`, a message at a time.
    Session { writers: usize },
    /// `AsyncPostgresSaver.aput` of a checkpoint with a hundred messages.
    Saver { writers: usize },
}

pub(super) fn measure(bench: &Bench<'_>, peers: &Peers, findings: &mut Findings) -> Result<()> {
    let mut chart = Chart::new("Durable appends in PostgreSQL", Unit::Rate);
    for writers in WRITERS {
        let name = match writers {
            1 => "durable append, 1 writer".to_owned(),
            many => format!("durable append, {many} writers"),
        };
        let mut samples = take(bench, peers, writers)?.into_iter();
        let ours = samples.next().context("no samples of ours")?;
        let bare = samples.next().context("no samples of pgbench")?;
        let row = || Row::new(&name, Unit::Rate, &ours);
        findings.row(
            row()
                .against("pgbench, a bare insert", &bare)
                .target(Target::AtLeast(0.5)),
        );
        chart.ours(format!("Throughline, {writers}"), &ours);
        chart.other(format!("pgbench, {writers}"), &bare);
        for peer in [
            "openai-agents SQLAlchemySession",
            "LangGraph AsyncPostgresSaver",
        ] {
            findings.row(match samples.next() {
                Some(theirs) => {
                    chart.other(format!("{peer}, {writers}"), &theirs);
                    row().against(peer, &theirs)
                }
                None => Row::missing(format!("{name}, {peer}"), peers.why_not()),
            });
        }
    }
    findings.chart(chart);
    Ok(())
}

fn take(bench: &Bench<'_>, peers: &Peers, writers: usize) -> Result<Vec<Samples>> {
    let slice = bench.pace.slice;
    let ours = Appending::new(bench.store()?, &bench.clock, writers);
    let ours = bench.runtime.block_on(ours)?;
    let mut contenders = vec![
        Contender::new("Throughline", || {
            ours.run(&bench.runtime, &bench.clock, slice)
        }),
        Contender::new("pgbench", || bench.server.bare(&bench.dir, writers, slice)),
    ];
    if peers.are_there() {
        contenders.push(Contender::new("SQLAlchemySession", || {
            peers.rate(&Work::Session { writers }, slice)
        }));
        contenders.push(Contender::new("AsyncPostgresSaver", || {
            peers.rate(&Work::Saver { writers }, slice)
        }));
    }
    take_turns(bench.pace.rounds, contenders)
}
