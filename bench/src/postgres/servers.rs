//! Several servers over one database against one.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Bench, Findings};
use crate::figure::Unit;
use crate::rounds::{Contender, take_turns};
use crate::server::append::{Delays, calls_to, message, session};
use crate::server::client::{Connection, request};
use crate::server::idle::Process;
use crate::table::Row;

const SERVERS: usize = 3;
const CONNECTIONS: usize = 64;

pub(super) fn measure(bench: &Bench<'_>, tl: Option<&Path>, findings: &mut Findings) -> Result<()> {
    let name = format!("append over HTTP, {SERVERS} servers, {CONNECTIONS} connections");
    let Some(tl) = tl else {
        findings.row(Row::missing(name, "no `tl` was named"));
        return Ok(());
    };
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        let home = bench.dir.join(format!("server-{number}"));
        servers.push(Process::start(tl, &home, Some(bench.server.url()))?);
    }
    let first = servers.first().context("no server")?.address;
    let requests = bench.runtime.block_on(async {
        let mut connection = Connection::open(first).await?;
        let body = message();
        let mut requests = Vec::new();
        for _ in 0..CONNECTIONS {
            let id = session(&mut connection).await?;
            let path = format!("/api/sessions/{id}/entries");
            requests.push(request("POST", &path, &body));
        }
        anyhow::Ok(requests)
    })?;
    let run = |servers: &[Process]| {
        let to = servers.iter().map(|server| server.address).cycle();
        let requests = to.zip(requests.iter().cloned()).collect();
        let mut unused = Delays::default();
        let calls = calls_to(requests, bench.pace.slice, &mut unused);
        bench.runtime.block_on(calls)
    };
    let contenders = vec![
        Contender::new("several servers", || run(&servers)),
        Contender::new("one server", || run(&servers[..1])),
    ];
    let samples = take_turns(bench.pace.rounds, contenders)?;
    findings.row(Row::new(name, Unit::Rate, &samples[0]).against("one server", &samples[1]));
    Ok(())
}
