//! Compares appends to sessions of different lengths with storing a session as one document.
//!
//! Rewriting a file or a checkpoint costs in proportion to the session's length each time; an
//! append should not.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use throughline_model::{Owner, SessionRef};
use throughline_sqlite::SqliteStore;
use throughline_store::LogStore;

use super::{Bench, BenchReport, PeerTask};
use crate::chart::Chart;
use crate::peers::Peers;
use crate::rounds::{Contender, measure_rate, run_rounds};
use crate::sample;
use crate::table::{Row, Target};
use crate::units::{Unit, format_number, to_f64};

const LENGTHS: [u64; 3] = [100, 1_000, 10_000];

pub(super) fn measure(bench: &Bench, peers: &Peers, findings: &mut BenchReport) -> Result<()> {
    let folder = bench.create_folder("rewrite")?;
    let store = sample::create_store(&folder, "store.db")?;
    for length in LENGTHS {
        let ours = AppendRun::new(bench, &store, length, "others")?;
        compare_with_others(&ours, &folder, peers, findings)?;
    }
    let [short, _, long] = LENGTHS;
    compare_lengths(
        &AppendRun::new(bench, &store, long, "itself")?,
        &AppendRun::new(bench, &store, short, "itself")?,
        findings,
    )
}

/// Compares an append with rewriting a session of this length.
fn compare_with_others(
    ours: &AppendRun<'_>,
    folder: &Path,
    peers: &Peers,
    findings: &mut BenchReport,
) -> Result<()> {
    let (pace, length) = (ours.bench.pace, ours.length);
    let mut contenders = vec![
        Contender::new("Throughline", || ours.run()),
        Contender::new("rewriting a file", || {
            rewrite_file(folder, length, pace.slice)
        }),
    ];
    if peers.are_available() {
        contenders.push(Contender::new("SqliteSaver", || {
            peers.measure_rate(&PeerTask::Saver { messages: length }, pace.slice)
        }));
    }
    let samples = run_rounds(pace.rounds, contenders)?;

    let length = format_number(to_f64(length));
    let name = format!("append to a session of {length}");
    let row = || Row::new(&name, Unit::Rate, &samples[0]);
    let title = format!("Durable appends to a session of {length} messages");
    let mut chart = Chart::new(title, Unit::Rate);
    chart.add_ours("Throughline", &samples[0]);
    findings.add_row(row().against("rewrite its JSON, sync, rename", &samples[1]));
    chart.add_other("rewrite its JSON, sync, rename", &samples[1]);
    if let Some(peer) = samples.get(2) {
        findings.add_row(row().against("LangGraph SqliteSaver.put", peer));
        chart.add_other("LangGraph SqliteSaver.put", peer);
    } else {
        let name = format!("{name}, LangGraph SqliteSaver");
        findings.add_row(Row::not_measured(name, peers.unavailable_reason()));
    }
    findings.add_chart(chart);
    Ok(())
}

/// Compares an append to a long session with one to a short one, with no other load on the
/// disk.
fn compare_lengths(
    long: &AppendRun<'_>,
    short: &AppendRun<'_>,
    findings: &mut BenchReport,
) -> Result<()> {
    let contenders = vec![
        Contender::new("a long session", || long.run()),
        Contender::new("a short session", || short.run()),
    ];
    let samples = run_rounds(long.bench.pace.rounds, contenders)?;
    let at = |length| format!("time of an append at {}", format_number(to_f64(length)));
    findings.add_row(
        Row::new(at(long.length), Unit::Time, &samples[0].inverse())
            .against(at(short.length), &samples[1].inverse())
            .target(Target::AtMost(1.3)),
    );
    Ok(())
}

/// Appends to sessions of one length.
///
/// All sessions are created before anything is timed: creating long ones keeps the disk busy
/// for a while, which would slow the first appends.
struct AppendRun<'a> {
    bench: &'a Bench,
    store: &'a SqliteStore,
    length: u64,
    unused_sessions: RefCell<Vec<SessionRef>>,
}

impl<'a> AppendRun<'a> {
    fn new(bench: &'a Bench, store: &'a SqliteStore, length: u64, purpose: &str) -> Result<Self> {
        let ours = Self {
            bench,
            store,
            length,
            unused_sessions: RefCell::default(),
        };
        let runs = bench.pace.rounds as u64 + 1;
        let needed = runs * ours.appends().div_ceil(ours.burst());
        for n in 0..needed {
            let name = format!("{purpose}-{length}-{n}");
            let owner = Owner::local();
            let session = sample::create_session(store, &bench.clock, &owner, &name, length);
            let session = bench.runtime.block_on(session)?;
            ours.unused_sessions.borrow_mut().push(session);
        }
        Ok(ours)
    }

    /// Returns how many appends one run times.
    fn appends(&self) -> u64 {
        1_000 / self.bench.scale.min(3)
    }

    /// Returns how many of them one session gets, so that it grows by at most half.
    fn burst(&self) -> u64 {
        self.appends().min(self.length / 2)
    }

    /// Returns appends per second.
    fn run(&self) -> Result<f64> {
        let text = sample::message_text();
        let start = Instant::now();
        let mut left = self.appends();
        while left > 0 {
            let burst = left.min(self.burst());
            left -= burst;
            let session = self.unused_sessions.borrow_mut().pop();
            let session = session.context("too few sessions were made")?;
            self.bench.runtime.block_on(async {
                for _ in 0..burst {
                    let append = self.bench.clock.messages(&text, 1)?;
                    self.store.append(&session, append).await?;
                }
                anyhow::Ok(())
            })?;
        }
        Ok(to_f64(self.appends()) / start.elapsed().as_secs_f64())
    }
}

#[derive(Clone, Serialize)]
struct Message {
    role: &'static str,
    content: String,
}

/// Adds a message by writing all of them to a new file that replaces the old one.
fn rewrite_file(folder: &Path, length: u64, slice: Duration) -> Result<f64> {
    let message = Message {
        role: "user",
        content: sample::message_text(),
    };
    let messages = vec![message; usize::try_from(length)? + 1];
    let (new, old) = (folder.join("session.json.new"), folder.join("session.json"));
    measure_rate(slice, || {
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&messages)?)?;
        file.sync_data()?;
        Ok(fs::rename(&new, &old)?)
    })
}
