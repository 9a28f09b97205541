//! How long an event takes to everybody who listens.

use std::time::Instant;

use anyhow::Result;
use tokio::task::JoinSet;

use super::append::{message, session};
use super::client::{Connection, request};
use super::served::Served;
use super::{Bench, Findings};
use crate::chart::Chart;
use crate::figure::Unit;
use crate::rounds::Samples;
use crate::table::Row;

const SUBSCRIBERS: [usize; 3] = [1, 100, 1_000];
const EVENTS: u64 = 50;

pub(super) fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let served = Served::ours(&bench.dir().join("events.db"))?;
    let mut chart = Chart::new("From the acknowledgement to the last reader", Unit::Time);
    for readers in SUBSCRIBERS {
        let mut delays =
            bench
                .runtime
                .block_on(delays(&served, readers, EVENTS / bench.scale.min(5)))?;
        delays.sort_by(f64::total_cmp);
        let at = |percent: usize| Samples(vec![delays[delays.len() * percent / 100]]);
        let name = match readers {
            1 => "an event to 1 reader".to_owned(),
            many => format!("an event to the last of {many} readers"),
        };
        findings.row(Row::new(format!("{name}: p50"), Unit::Time, &at(50)));
        findings.row(Row::new(format!("{name}: p99"), Unit::Time, &at(99)));
        chart.ours(format!("{readers} readers"), &at(50));
    }
    findings.chart(chart);
    Ok(())
}

async fn delays(served: &Served, readers: usize, events: u64) -> Result<Vec<f64>> {
    let mut writer = Connection::open(served.address).await?;
    let id = session(&mut writer).await?;
    let listen = request("GET", &format!("/api/sessions/{id}/events"), "");
    let mut waiting = Vec::new();
    for _ in 0..readers {
        let mut reader = Connection::open(served.address).await?;
        reader.listen(&listen, b"event: ready\n").await?;
        waiting.push(reader);
    }
    let append = request("POST", &format!("/api/sessions/{id}/entries"), &message());
    let mut delays = Vec::new();
    for _ in 0..events {
        let mut tasks = JoinSet::new();
        for mut reader in waiting.drain(..) {
            tasks.spawn(async move {
                reader.wait_for(b"message_added").await?;
                anyhow::Ok((reader, Instant::now()))
            });
        }
        writer.call(&append).await?;
        let said = Instant::now();
        let mut last = said;
        for heard in tasks.join_all().await {
            let (reader, at) = heard?;
            last = last.max(at);
            waiting.push(reader);
        }
        delays.push(last.duration_since(said).as_secs_f64());
    }
    Ok(delays)
}
