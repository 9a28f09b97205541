//! Appends and reads with many connections.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use throughline::{Message, NewSession, Role, Session, Throughline};
use tokio::task::JoinSet;

use super::client::{Connection, request};
use super::served::Served;
use super::{Bench, CONNECTIONS, Findings, text};
use crate::chart::Chart;
use crate::figure::{Unit, float};
use crate::rounds::{Contender, Samples, take_turns};
use crate::table::{Row, Target};

/// How many entries a read has.
const TAIL: usize = 50;

pub(super) fn measure(bench: &Bench, findings: &mut Findings) -> Result<()> {
    let served = Served::ours(&bench.dir().join("served.db"))?;
    let limit = Served::limit()?;
    let engine = bench.runtime.block_on(Engine::open(bench))?;
    let http = bench.runtime.block_on(Http::open(served.address))?;
    let body = message();

    let mut delays = Delays::default();
    let slice = bench.pace.slice;
    let mut samples = take_turns(
        bench.pace.rounds,
        vec![
            Contender::new("HTTP", || {
                let requests = http.requests("POST", "entries", &body);
                bench
                    .runtime
                    .block_on(calls(served.address, requests, slice, &mut delays))
            }),
            Contender::new("the engine", || {
                bench.runtime.block_on(engine.appends(bench))
            }),
            Contender::new("the limit", || {
                let requests = vec![request("POST", "/limit", &body); CONNECTIONS];
                let mut unused = Delays::default();
                bench
                    .runtime
                    .block_on(calls(limit.address, requests, slice, &mut unused))
            }),
        ],
    )?
    .into_iter();
    let mut next = || samples.next().context("a contender has no samples");
    let (ours, direct, nothing) = (next()?, next()?, next()?);
    let name = format!("append over HTTP, {CONNECTIONS} connections");
    let row = || Row::new(&name, Unit::Rate, &ours);
    findings.row(
        row()
            .against("the engine called directly", &direct)
            .target(Target::AtLeast(0.5)),
    );
    findings.row(row().against("a handler that stores nothing", &nothing));
    delays.tell(&name, findings);
    let mut chart = Chart::new("Durable appends, 64 at once", Unit::Rate);
    chart.ours("over HTTP", &ours);
    chart.other("the engine called directly", &direct);
    chart.other("HTTP, storing nothing", &nothing);
    findings.chart(chart);

    let mut delays = Delays::default();
    let page = format!("entries?limit={TAIL}");
    let mut samples = take_turns(
        bench.pace.rounds,
        vec![
            Contender::new("HTTP", || {
                let requests = http.requests("GET", &page, "");
                bench
                    .runtime
                    .block_on(calls(served.address, requests, slice, &mut delays))
            }),
            Contender::new("the engine", || bench.runtime.block_on(engine.reads(bench))),
        ],
    )?
    .into_iter();
    let mut next = || samples.next().context("a contender has no samples");
    let (ours, direct) = (next()?, next()?);
    let name = format!("read the last {TAIL} over HTTP, {CONNECTIONS} connections");
    findings.row(Row::new(&name, Unit::Rate, &ours).against("the engine called directly", &direct));
    delays.tell(&name, findings);
    Ok(())
}

/// A message, as it is appended over HTTP.
pub(crate) fn message() -> String {
    json!({"entries": [{"role": "user", "content": text()}]}).to_string()
}

/// A session for each connection.
struct Http {
    sessions: Vec<String>,
}

impl Http {
    async fn open(address: SocketAddr) -> Result<Self> {
        let mut connection = Connection::open(address).await?;
        let mut sessions = Vec::new();
        for _ in 0..CONNECTIONS {
            sessions.push(session(&mut connection).await?);
        }
        Ok(Self { sessions })
    }

    fn requests(&self, method: &str, what: &str, body: &str) -> Vec<Vec<u8>> {
        let path = |id: &String| format!("/api/sessions/{id}/{what}");
        let sessions = self.sessions.iter();
        sessions
            .map(|id| request(method, &path(id), body))
            .collect()
    }
}

/// Makes a session; its id.
pub(crate) async fn session(connection: &mut Connection) -> Result<String> {
    let made = connection
        .call(&request("POST", "/api/sessions", "{}"))
        .await?;
    let made: Value = serde_json::from_str(&made)?;
    let id = made["id"].as_str().context("a session without an id")?;
    Ok(id.to_owned())
}

/// How long single calls took.
#[derive(Default)]
pub(crate) struct Delays(Vec<f64>);

impl Delays {
    fn tell(&mut self, name: &str, findings: &mut Findings) {
        self.0.sort_by(f64::total_cmp);
        for (percent, label) in [(50, "p50"), (99, "p99")] {
            let Some(at) = self.0.get(self.0.len() * percent / 100) else {
                continue;
            };
            let row = Row::new(format!("{name}: {label}"), Unit::Time, &Samples(vec![*at]));
            findings.row(row);
        }
    }
}

/// Each request again and again on a connection of its own; how many a second.
async fn calls(
    to: SocketAddr,
    requests: Vec<Vec<u8>>,
    slice: std::time::Duration,
    delays: &mut Delays,
) -> Result<f64> {
    let requests = requests.into_iter().map(|request| (to, request));
    calls_to(requests.collect(), slice, delays).await
}

/// The same, each to a server of its own.
pub(crate) async fn calls_to(
    requests: Vec<(SocketAddr, Vec<u8>)>,
    slice: std::time::Duration,
    delays: &mut Delays,
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
    Ok(float(done) / start.elapsed().as_secs_f64())
}

/// The engine, called by as many tasks.
struct Engine {
    sessions: Vec<Session>,
}

impl Engine {
    async fn open(bench: &Bench) -> Result<Self> {
        let store = bench.dir().join("direct.db");
        let tl = Throughline::open(&format!("sqlite:{}", store.display())).await?;
        let mut sessions = Vec::new();
        for _ in 0..CONNECTIONS {
            sessions.push(tl.create(NewSession::default()).await?);
        }
        Ok(Self { sessions })
    }

    async fn appends(&self, bench: &Bench) -> Result<f64> {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for session in self.sessions.clone() {
            let slice = bench.pace.slice;
            tasks.spawn(async move {
                let (text, mut done) = (text(), 0_u64);
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
        Ok(float(done) / start.elapsed().as_secs_f64())
    }

    async fn reads(&self, bench: &Bench) -> Result<f64> {
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
        Ok(float(done) / start.elapsed().as_secs_f64())
    }
}
