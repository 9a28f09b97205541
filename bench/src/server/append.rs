//! Measures appends and reads over HTTP on many connections, and directly in the engine.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use throughline::{Message, NewSession, Role, Session, Throughline};
use tokio::task::JoinSet;

use super::bench_server::BenchServer;
use super::client::{Connection, http_request};
use super::{Bench, BenchReport, CONNECTIONS, message_text};
use crate::chart::Chart;
use crate::rounds::{Contender, Samples, run_rounds};
use crate::table::{Row, Target};
use crate::units::{Unit, to_f64};

/// Entries per read.
const TAIL: usize = 50;

pub(super) fn measure(bench: &Bench, findings: &mut BenchReport) -> Result<()> {
    let served = BenchServer::start_throughline(&bench.dir().join("served.db"))?;
    let limit = BenchServer::start_noop()?;
    let engine = bench.runtime.block_on(EngineSessions::open(bench))?;
    let http = bench.runtime.block_on(HttpSessions::open(served.address))?;
    let body = message_body();

    let mut delays = Latencies::default();
    let slice = bench.pace.slice;
    let mut samples = run_rounds(
        bench.pace.rounds,
        vec![
            Contender::new("HTTP", || {
                let requests = http.requests("POST", "entries", &body);
                bench
                    .runtime
                    .block_on(measure_calls(served.address, requests, slice, &mut delays))
            }),
            Contender::new("the engine", || {
                bench.runtime.block_on(engine.measure_appends(bench))
            }),
            Contender::new("the limit", || {
                let requests = vec![http_request("POST", "/limit", &body); CONNECTIONS];
                let mut unused = Latencies::default();
                bench
                    .runtime
                    .block_on(measure_calls(limit.address, requests, slice, &mut unused))
            }),
        ],
    )?
    .into_iter();
    let mut next = || samples.next().context("a contender has no samples");
    let (ours, direct, nothing) = (next()?, next()?, next()?);
    let name = format!("append over HTTP, {CONNECTIONS} connections");
    let row = || Row::new(&name, Unit::Rate, &ours);
    findings.add_row(
        row()
            .against("the engine called directly", &direct)
            .target(Target::AtLeast(0.5)),
    );
    findings.add_row(row().against("a handler that stores nothing", &nothing));
    delays.report_to(&name, findings);
    let mut chart = Chart::new("Durable appends, 64 at once", Unit::Rate);
    chart.add_ours("over HTTP", &ours);
    chart.add_other("the engine called directly", &direct);
    chart.add_other("HTTP, storing nothing", &nothing);
    findings.add_chart(chart);

    let mut delays = Latencies::default();
    let page = format!("entries?limit={TAIL}");
    let mut samples = run_rounds(
        bench.pace.rounds,
        vec![
            Contender::new("HTTP", || {
                let requests = http.requests("GET", &page, "");
                bench
                    .runtime
                    .block_on(measure_calls(served.address, requests, slice, &mut delays))
            }),
            Contender::new("the engine", || {
                bench.runtime.block_on(engine.measure_reads(bench))
            }),
        ],
    )?
    .into_iter();
    let mut next = || samples.next().context("a contender has no samples");
    let (ours, direct) = (next()?, next()?);
    let name = format!("read the last {TAIL} over HTTP, {CONNECTIONS} connections");
    findings
        .add_row(Row::new(&name, Unit::Rate, &ours).against("the engine called directly", &direct));
    delays.report_to(&name, findings);
    Ok(())
}

/// Returns the request body of an append.
pub(crate) fn message_body() -> String {
    json!({"entries": [{"role": "user", "content": message_text()}]}).to_string()
}

/// One session per connection.
struct HttpSessions {
    sessions: Vec<String>,
}

impl HttpSessions {
    async fn open(address: SocketAddr) -> Result<Self> {
        let mut connection = Connection::open(address).await?;
        let mut sessions = Vec::new();
        for _ in 0..CONNECTIONS {
            sessions.push(create_session(&mut connection).await?);
        }
        Ok(Self { sessions })
    }

    fn requests(&self, method: &str, what: &str, body: &str) -> Vec<Vec<u8>> {
        let path = |id: &String| format!("/api/sessions/{id}/{what}");
        let sessions = self.sessions.iter();
        sessions
            .map(|id| http_request(method, &path(id), body))
            .collect()
    }
}

/// Creates a session; returns its id.
pub(crate) async fn create_session(connection: &mut Connection) -> Result<String> {
    let made = connection
        .call(&http_request("POST", "/api/sessions", "{}"))
        .await?;
    let made: Value = serde_json::from_str(&made)?;
    let id = made["id"].as_str().context("a session without an id")?;
    Ok(id.to_owned())
}

/// The latencies of single calls.
#[derive(Default)]
pub(crate) struct Latencies(Vec<f64>);

impl Latencies {
    fn report_to(&mut self, name: &str, findings: &mut BenchReport) {
        self.0.sort_by(f64::total_cmp);
        for (percent, label) in [(50, "p50"), (99, "p99")] {
            let Some(at) = self.0.get(self.0.len() * percent / 100) else {
                continue;
            };
            let row = Row::new(format!("{name}: {label}"), Unit::Time, &Samples(vec![*at]));
            findings.add_row(row);
        }
    }
}

/// Repeats each request on its own connection; returns calls per second.
async fn measure_calls(
    to: SocketAddr,
    requests: Vec<Vec<u8>>,
    slice: std::time::Duration,
    delays: &mut Latencies,
) -> Result<f64> {
    let requests = requests.into_iter().map(|request| (to, request));
    measure_calls_to(requests.collect(), slice, delays).await
}

/// Repeats each request on its own connection to its own server.
pub(crate) async fn measure_calls_to(
    requests: Vec<(SocketAddr, Vec<u8>)>,
    slice: std::time::Duration,
    delays: &mut Latencies,
) -> Result<f64> {
    let mut connections = Vec::new();
    for (to, _) in &requests {
        connections.push(Connection::open(*to).await?);
    }
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for (mut connection, (_, request)) in connections.into_iter().zip(requests) {
        tasks.spawn(async move {
            let mut took = Vec::new();
            while start.elapsed() < slice {
                let began = Instant::now();
                connection.call(&request).await?;
                took.push(began.elapsed().as_secs_f64());
            }
            anyhow::Ok(took)
        });
    }
    let mut done = 0;
    for took in tasks.join_all().await {
        let took = took?;
        done += took.len() as u64;
        delays.0.extend(took);
    }
    Ok(to_f64(done) / start.elapsed().as_secs_f64())
}

/// Sessions of the engine, called directly by as many tasks.
struct EngineSessions {
    sessions: Vec<Session>,
}

impl EngineSessions {
    async fn open(bench: &Bench) -> Result<Self> {
        let store = bench.dir().join("direct.db");
        let tl = Throughline::open(&format!("sqlite:{}", store.display())).await?;
        let mut sessions = Vec::new();
        for _ in 0..CONNECTIONS {
            sessions.push(tl.create(NewSession::default()).await?);
        }
        Ok(Self { sessions })
    }

    async fn measure_appends(&self, bench: &Bench) -> Result<f64> {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for session in self.sessions.clone() {
            let slice = bench.pace.slice;
            tasks.spawn(async move {
                let (text, mut done) = (message_text(), 0_u64);
                while start.elapsed() < slice {
                    session
                        .append(Message::text(Role::User, text.clone()))
                        .await?;
                    done += 1;
                }
                anyhow::Ok(done)
            });
        }
        let done: u64 = tasks.join_all().await.into_iter().sum::<Result<u64>>()?;
        Ok(to_f64(done) / start.elapsed().as_secs_f64())
    }

    async fn measure_reads(&self, bench: &Bench) -> Result<f64> {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for session in self.sessions.clone() {
            let slice = bench.pace.slice;
            tasks.spawn(async move {
                let mut done = 0_u64;
                while start.elapsed() < slice {
                    session.tail(TAIL).await?;
                    done += 1;
                }
                anyhow::Ok(done)
            });
        }
        let done: u64 = tasks.join_all().await.into_iter().sum::<Result<u64>>()?;
        Ok(to_f64(done) / start.elapsed().as_secs_f64())
    }
}
