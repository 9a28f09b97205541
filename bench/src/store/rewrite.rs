//! Appends at different lengths, against keeping a session in one document.
//!
//! Rewriting a file or a checkpoint costs the length of the session each time; an
//! append should not.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use throughline_sqlite::SqliteStore;
use throughline_store::LogStore;

use super::peers::{Peers, Work};
use super::{Bench, Findings, sample};
use crate::chart::Chart;
use crate::figure::{Unit, digits, float};
use crate::rounds::{Contender, rate, take_turns};
use crate::table::{Row, Target};

const LENGTHS: [u64; 3] = [100, 1_000, 10_000];

pub(super) fn measure(bench: &Bench, peers: &Peers, findings: &mut Findings) -> Result<()> {
    let folder = bench.folder("rewrite")?;
    let ours = Ours {
        bench,
        store: sample::store(&folder, "store.db")?,
        made: Cell::new(0),
    };
    for length in LENGTHS {
        against_others(&ours, &folder, peers, length, findings)?;
    }
    against_itself(&ours, findings)
}

/// An append against the rewriting of a session of this length.
fn against_others(
    ours: &Ours<'_>,
    folder: &Path,
    peers: &Peers,
    length: u64,
    findings: &mut Findings,
) -> Result<()> {
    let pace = ours.bench.pace;
    let mut contenders = vec![
        Contender::new("Throughline", || ours.run(length)),
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
fn against_itself(ours: &Ours<'_>, findings: &mut Findings) -> Result<()> {
    let [short, _, long] = LENGTHS;
    let contenders = vec![
        Contender::new("a long session", || ours.run(long)),
        Contender::new("a short session", || ours.run(short)),
    ];
    let samples = take_turns(ours.bench.pace.rounds, contenders)?;
    let at = |length| format!("time of an append at {}", digits(float(length)));
    findings.row(
        Row::new(at(long), Unit::Time, &samples[0].inverse())
            .against(at(short), &samples[1].inverse())
            .target(Target::AtMost(1.3)),
    );
    Ok(())
}

/// Appends to sessions of our own.
struct Ours<'a> {
    bench: &'a Bench,
    store: SqliteStore,
    /// How many sessions there are by now.
    made: Cell<u64>,
}

impl Ours<'_> {
    /// How many appends a second, to sessions that are `length` long and at most half as
    /// long again at the end. The making of the sessions is not timed.
    fn run(&self, length: u64) -> Result<f64> {
        let bench = self.bench;
        let appends = 1_000 / bench.scale.min(3);
        let text = sample::text();
        let mut timed = Duration::ZERO;
        let mut left = appends;
        while left > 0 {
            let burst = left.min(length / 2);
            left -= burst;
            self.made.set(self.made.get() + 1);
            let name = format!("rewrite-{}", self.made.get());
            timed += bench.runtime.block_on(async {
                let session = sample::session(&self.store, &bench.clock, &name, length).await?;
                let start = Instant::now();
                for _ in 0..burst {
                    let append = bench.clock.messages(&text, 1)?;
                    self.store.append(&session, append).await?;
                }
                anyhow::Ok(start.elapsed())
            })?;
        }
        Ok(float(appends) / timed.as_secs_f64())
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
