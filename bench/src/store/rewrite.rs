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
use crate::rounds::{Contender, Samples, rate, take_turns};
use crate::table::{Row, Target};

const LENGTHS: [u64; 3] = [100, 1_000, 10_000];

pub(super) fn measure(bench: &Bench, peers: &Peers, findings: &mut Findings) -> Result<()> {
    let folder = bench.folder("rewrite")?;
    let store = sample::store(&folder, "store.db")?;
    let made = Cell::new(0);
    let mut contenders = Vec::new();
    for length in LENGTHS {
        let (store, made, folder) = (&store, &made, &folder);
        let appends = 1_000 / bench.scale.min(3);
        contenders.push(Contender::new("Throughline", move || {
            ours(bench, store, made, length, appends)
        }));
        let slice = bench.pace.slice;
        contenders.push(Contender::new("rewriting a file", move || {
            rewrite(folder, length, slice)
        }));
        if peers.are_there() {
            contenders.push(Contender::new("SqliteSaver", move || {
                peers.rate(&Work::Saver { messages: length }, slice)
            }));
        }
    }
    let each = contenders.len() / LENGTHS.len();
    let samples = take_turns(bench.pace.rounds, contenders)?;
    let by_length: Vec<&[Samples]> = samples.chunks(each).collect();
    for (length, samples) in LENGTHS.into_iter().zip(&by_length) {
        let length = digits(float(length));
        let name = format!("append to a session of {length}");
        let row = || Row::new(&name, Unit::Rate, &samples[0]);
        findings.row(row().against("rewrite its JSON, sync, rename", &samples[1]));
        findings.row(match samples.get(2) {
            Some(peer) => row().against("LangGraph SqliteSaver.put", peer),
            None => Row::missing(format!("{name}, LangGraph SqliteSaver"), peers.why_not()),
        });
        let title = format!("Durable appends to a session of {length} messages");
        let mut chart = Chart::new(title, Unit::Rate);
        chart.ours("Throughline", &samples[0]);
        chart.other("rewrite its JSON, sync, rename", &samples[1]);
        if let Some(peer) = samples.get(2) {
            chart.other("LangGraph SqliteSaver.put", peer);
        }
        findings.chart(chart);
    }
    let (short, long) = (by_length[0][0].inverse(), by_length[2][0].inverse());
    findings.row(
        Row::new("time of an append at 10,000", Unit::Time, &long)
            .against("Throughline at 100", &short)
            .target(Target::AtMost(1.3)),
    );
    Ok(())
}

/// Appends to sessions that are `length` long, and at most half as long again at the end.
///
/// Only the appends are timed, not the making of the sessions.
fn ours(
    bench: &Bench,
    store: &SqliteStore,
    made: &Cell<u64>,
    length: u64,
    appends: u64,
) -> Result<f64> {
    let text = sample::text();
    let mut timed = Duration::ZERO;
    let mut left = appends;
    while left > 0 {
        let burst = left.min(length / 2);
        left -= burst;
        made.set(made.get() + 1);
        let name = format!("rewrite-{}", made.get());
        timed += bench.runtime.block_on(async {
            let session = sample::session(store, &bench.clock, &name, length).await?;
            let start = Instant::now();
            for _ in 0..burst {
                store
                    .append(&session, bench.clock.messages(&text, 1)?)
                    .await?;
            }
            anyhow::Ok(start.elapsed())
        })?;
    }
    Ok(float(appends) / timed.as_secs_f64())
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
