//! Compares several servers over one database with a single server.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Bench, BenchReport};
use crate::rounds::{Contender, run_rounds};
use crate::server::append::{Latencies, create_session, measure_calls_to, message_body};
use crate::server::client::{Connection, http_request};
use crate::server::idle::ServeProcess;
use crate::table::Row;
use crate::units::Unit;

const SERVERS: usize = 3;
const CONNECTIONS: usize = 64;

pub(super) fn measure(
    bench: &Bench<'_>,
    tl: Option<&Path>,
    findings: &mut BenchReport,
) -> Result<()> {
    let name = format!("append over HTTP, {SERVERS} servers, {CONNECTIONS} connections");
    let Some(tl) = tl else {
        findings.add_row(Row::not_measured(name, "no --tl given"));
        return Ok(());
    };
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        let home = bench.dir.join(format!("server-{number}"));
        servers.push(ServeProcess::start(tl, &home, Some(bench.database.url()))?);
    }
    let first = servers.first().context("no server")?.address;
    let requests = bench.runtime.block_on(async {
        let mut connection = Connection::open(first).await?;
        let body = message_body();
        let mut requests = Vec::new();
        for _ in 0..CONNECTIONS {
            let id = create_session(&mut connection).await?;
            let path = format!("/api/sessions/{id}/entries");
            requests.push(http_request("POST", &path, &body));
        }
        anyhow::Ok(requests)
    })?;
    let run = |servers: &[ServeProcess]| {
        let to = servers.iter().map(|server| server.address).cycle();
        let requests = to.zip(requests.iter().cloned()).collect();
        let mut unused = Latencies::default();
        let calls = measure_calls_to(requests, bench.pace.slice, &mut unused);
        bench.runtime.block_on(calls)
    };
    let contenders = vec![
        Contender::new("several servers", || run(&servers)),
        Contender::new("one server", || run(&servers[..1])),
    ];
    let samples = run_rounds(bench.pace.rounds, contenders)?;
    findings.add_row(Row::new(name, Unit::Rate, &samples[0]).against("one server", &samples[1]));
    Ok(())
}
