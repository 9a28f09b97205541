//! Appends at different lengths, against keeping a session in one document.
//!
//! Rewriting a file or a checkpoint costs the length of the session each time; an
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

use super::{Bench, Findings, Work};
use crate::chart::Chart;
use crate::figure::{Unit, digits, float};
use crate::peers::Peers;
use crate::rounds::{Contender, rate, take_turns};
use crate::sample;
use crate::table::{Row, Target};

const LENGTHS: [u64; 3] = [100, 1_000, 10_000];

pub(super) fn measure(bench: &Bench, peers: &Peers, findings: &mut Findings) -> Result<()> {
    let folder = bench.folder("rewrite")?;
    let store = sample::store(&folder, "store.db")?;
    for length in LENGTHS {
        let ours = Ours::new(bench, &store, length, "others")?;
        against_others(&ours, &folder, peers, findings)?;
    }
    let [short, _, long] = LENGTHS;
    against_itself(
        &Ours::new(bench, &store, long, "itself")?,
        &Ours::new(bench, &store, short, "itself")?,
        findings,
    )
}

/// An append against the rewriting of a session of this length.
fn against_others(
    ours: &Ours<'_>,
    folder: &Path,
    peers: &Peers,
    findings: &mut Findings,
) -> Result<()> {
    let (pace, length) = (ours.bench.pace, ours.length);
    let mut contenders = vec![
        Contender::new("Throughline", || ours.run()),
        Contender::new("rewriting a file", || rewrite(folder, length, pace.slice)),
    ];
    if peers.are_there() {
        contenders.push(Contender::new("SqliteSaver", || {
            peers.rate(&Work::Saver { messages: length }, pace.slice)
        }));
    }
    let samples = take_turns(pace.rounds, contenders)?;

    let length = digits(float(length));
    let name = format!("append to a session of {length}");
    let row = || Row::new(&name, Unit::Rate, &samples[0]);
    let title = format!("Durable appends to a session of {length} messages");
    let mut chart = Chart::new(title, Unit::Rate);
    chart.ours("Throughline", &samples[0]);
    findings.row(row().against("rewrite its JSON, sync, rename", &samples[1]));
    chart.other("rewrite its JSON, sync, rename", &samples[1]);
    if let Some(peer) = samples.get(2) {
        findings.row(row().against("LangGraph SqliteSaver.put", peer));
        chart.other("LangGraph SqliteSaver.put", peer);
    } else {
        let name = format!("{name}, LangGraph SqliteSaver");
        findings.row(Row::missing(name, peers.why_not()));
    }
    findings.chart(chart);
    Ok(())
}

/// An append to a long session against one to a short one, with nobody else at the disk.
fn against_itself(long: &Ours<'_>, short: &Ours<'_>, findings: &mut Findings) -> Result<()> {
    let contenders = vec![
        Contender::new("a long session", || long.run()),
        Contender::new("a short session", || short.run()),
    ];
    let samples = take_turns(long.bench.pace.rounds, contenders)?;
    let at = |length| format!("time of an append at {}", digits(float(length)));
    findings.row(
        Row::new(at(long.length), Unit::Time, &samples[0].inverse())
            .against(at(short.length), &samples[1].inverse())
            .target(Target::AtMost(1.3)),
    );
    Ok(())
}

/// Appends to sessions of one length.
///
/// All sessions are made before anything is timed: a disk takes a while to get over the
/// making of long ones, and the first appends after it would pay.
struct Ours<'a> {
    bench: &'a Bench,
    store: &'a SqliteStore,
    length: u64,
    fresh: RefCell<Vec<SessionRef>>,
}

impl<'a> Ours<'a> {
    fn new(bench: &'a Bench, store: &'a SqliteStore, length: u64, purpose: &str) -> Result<Self> {
        let ours = Self {
            bench,
            store,
            length,
            fresh: RefCell::default(),
        };
        let runs = bench.pace.rounds as u64 + 1;
        let needed = runs * ours.appends().div_ceil(ours.burst());
        for n in 0..needed {
            let name = format!("{purpose}-{length}-{n}");
            let owner = Owner::local();
            let session = sample::session(store, &bench.clock, &owner, &name, length);
            let session = bench.runtime.block_on(session)?;
            ours.fresh.borrow_mut().push(session);
        }
        Ok(ours)
    }

    /// How many appends are timed in one run.
    fn appends(&self) -> u64 {
        1_000 / self.bench.scale.min(3)
    }

    /// How many of them one session gets: it is at most half as long again at the end.
    fn burst(&self) -> u64 {
        self.appends().min(self.length / 2)
    }

    /// How many appends a second.
    fn run(&self) -> Result<f64> {
        let text = sample::text();
        let start = Instant::now();
        let mut left = self.appends();
        while left > 0 {
            let burst = left.min(self.burst());
            left -= burst;
            let session = self.fresh.borrow_mut().pop();
            let session = session.context("too few sessions were made")?;
            self.bench.runtime.block_on(async {
                for _ in 0..burst {
                    let append = self.bench.clock.messages(&text, 1)?;
                    self.store.append(&session, append).await?;
                }
                anyhow::Ok(())
            })?;
        }
        Ok(float(self.appends()) / start.elapsed().as_secs_f64())
    }
}

#[derive(Clone, Serialize)]
struct Message {
    role: &'static str,
    content: String,
}

/// Adds a message by writing all of them to a new file that takes the place of the old.
fn rewrite(folder: &Path, length: u64, slice: Duration) -> Result<f64> {
    let message = Message {
        role: "user",
        content: sample::text(),
    };
    let messages = vec![message; usize::try_from(length)? + 1];
    let (new, old) = (folder.join("session.json.new"), folder.join("session.json"));
    rate(slice, || {
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&messages)?)?;
        file.sync_data()?;
        Ok(fs::rename(&new, &old)?)
    })
}
