//! Measures the time from the acknowledgement of an append until all subscribers have its event.

use std::time::Instant;

use anyhow::Result;
use tokio::task::JoinSet;

use super::append::{create_session, message_body};
use super::bench_server::BenchServer;
use super::client::{Connection, http_request};
use super::{Bench, BenchReport};
use crate::chart::Chart;
use crate::rounds::Samples;
use crate::table::Row;
use crate::units::Unit;

const SUBSCRIBERS: [usize; 3] = [1, 100, 1_000];
const EVENTS: u64 = 50;

pub(super) fn measure(bench: &Bench, findings: &mut BenchReport) -> Result<()> {
    let served = BenchServer::start_throughline(&bench.dir().join("events.db"))?;
    let mut chart = Chart::new("From the acknowledgement to the last reader", Unit::Time);
    for readers in SUBSCRIBERS {
        let mut delays = bench.runtime.block_on(measure_latencies(
            &served,
            readers,
            EVENTS / bench.scale.min(5),
        ))?;
        delays.sort_by(f64::total_cmp);
        let at = |percent: usize| Samples(vec![delays[delays.len() * percent / 100]]);
        let name = match readers {
            1 => "an event to 1 reader".to_owned(),
            many => format!("an event to the last of {many} readers"),
        };
        findings.add_row(Row::new(format!("{name}: p50"), Unit::Time, &at(50)));
        findings.add_row(Row::new(format!("{name}: p99"), Unit::Time, &at(99)));
        chart.add_ours(format!("{readers} readers"), &at(50));
    }
    findings.add_chart(chart);
    Ok(())
}

async fn measure_latencies(served: &BenchServer, readers: usize, events: u64) -> Result<Vec<f64>> {
    let mut writer = Connection::open(served.address).await?;
    let id = create_session(&mut writer).await?;
    let listen = http_request("GET", &format!("/api/sessions/{id}/events"), "");
    let mut waiting = Vec::new();
    for _ in 0..readers {
        let mut reader = Connection::open(served.address).await?;
        reader.listen(&listen, b"event: ready\n").await?;
        waiting.push(reader);
    }
    let append = http_request(
        "POST",
        &format!("/api/sessions/{id}/entries"),
        &message_body(),
    );
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
        let acknowledged = Instant::now();
        let mut last = acknowledged;
        for heard in tasks.join_all().await {
            let (reader, at) = heard?;
            last = last.max(at);
            waiting.push(reader);
        }
        delays.push(last.duration_since(acknowledged).as_secs_f64());
    }
    Ok(delays)
}
