//! Durable appends, by one writer and by many.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Bench, Findings, Work};
use crate::appending::{Appending, total};
use crate::chart::Chart;
use crate::figure::Unit;
use crate::peers::Peers;
use crate::rounds::{Contender, Samples, rate, take_turns};
use crate::sample;
use crate::table::{Row, Target};

const WRITERS: [usize; 4] = [1, 16, 64, 256];

/// What is compared in each round, in this order.
struct Sampled {
    ours: Samples,
    file: Samples,
    each: Samples,
    peer: Result<Samples, String>,
}

pub(super) fn measure(bench: &Bench, peers: &Peers, findings: &mut Findings) -> Result<()> {
    let mut curve = Chart::new("Durable appends by number of writers", Unit::Rate);
    for writers in WRITERS {
        let sampled = take(bench, peers, writers)?;
        rows(writers, &sampled, findings);
        curve.ours(format!("Throughline, {writers}"), &sampled.ours);
        curve.other(format!("one file, group commit, {writers}"), &sampled.file);
        curve.other(format!("a file a session, {writers}"), &sampled.each);
        if matches!(writers, 1 | 64) {
            findings.chart(chart(writers, &sampled));
        }
    }
    findings.chart(curve);
    Ok(())
}

fn rows(writers: usize, sampled: &Sampled, findings: &mut Findings) {
    let name = match writers {
        1 => "durable append, 1 writer".to_owned(),
        many => format!("durable append, {many} writers"),
    };
    let row = || Row::new(&name, Unit::Rate, &sampled.ours);
    let set = |row: Row, target: Option<Target>| match target {
        Some(target) => row.target(target),
        None => row,
    };
    let file = match writers {
        1 => "a plain file, synced each time",
        _ => "one plain file, group commit",
    };
    let target = match writers {
        1 => Some(Target::AtLeast(0.9)),
        64 => Some(Target::AtLeast(0.5)),
        _ => None,
    };
    findings.row(set(row().against(file, &sampled.file), target));
    if writers > 1 {
        let target = (writers == 64).then_some(Target::AtLeast(8.0));
        let each = row().against("a plain file a session, each synced", &sampled.each);
        findings.row(set(each, target));
    }
    findings.row(match &sampled.peer {
        Ok(samples) => {
            let target = (writers == 64).then_some(Target::AtLeast(20.0));
            set(
                row().against("openai-agents SQLiteSession", samples),
                target,
            )
        }
        Err(why) => Row::missing(format!("{name}, openai-agents SQLiteSession"), why),
    });
}

fn chart(writers: usize, sampled: &Sampled) -> Chart {
    let title = match writers {
        1 => "Durable appends, one writer".to_owned(),
        many => format!("Durable appends, {many} writers to sessions of their own"),
    };
    let mut chart = Chart::new(title, Unit::Rate);
    if writers == 1 {
        chart.other("plain file, synced", &sampled.file);
    } else {
        chart.other("one plain file, group commit", &sampled.file);
    }
    chart.ours("Throughline", &sampled.ours);
    if writers > 1 {
        chart.other("a plain file a session", &sampled.each);
    }
    if let Ok(peer) = &sampled.peer {
        chart.other("SQLiteSession", peer);
    }
    chart
}

fn take(bench: &Bench, peers: &Peers, writers: usize) -> Result<Sampled> {
    let folder = bench.folder(&format!("append-{writers}"))?;
    let store = Arc::new(sample::store(&folder, "store.db")?);
    let ours = Appending::new(store, &bench.clock, writers);
    let ours = bench.runtime.block_on(ours)?;
    let line = sample::line(&bench.clock)?;
    let slice = bench.pace.slice;
    let mut plain = append_to(&folder.join("plain.jsonl"))?;
    let group = Group::new(&folder.join("group.jsonl"))?;
    let mut files = (0..writers)
        .map(|n| append_to(&folder.join(format!("session-{n}.jsonl"))))
        .collect::<Result<Vec<_>>>()?;
    let mut contenders = vec![
        Contender::new("Throughline", || {
            ours.run(&bench.runtime, &bench.clock, slice)
        }),
        Contender::new("one plain file", || match writers {
            1 => rate(slice, || synced(&mut plain, &line)),
            many => bench.runtime.block_on(group.run(&line, many, slice)),
        }),
        Contender::new("a file a session", || each(&mut files, &line, slice)),
    ];
    if peers.are_there() {
        contenders.push(Contender::new("SQLiteSession", || {
            peers.rate(&Work::Session { writers }, slice)
        }));
    }
    let mut samples = take_turns(bench.pace.rounds, contenders)?;
    let peer = samples.drain(3..).next().ok_or_else(|| peers.why_not());
    let mut samples = samples.into_iter();
    let mut next = || samples.next().context("a contender has no samples");
    Ok(Sampled {
        ours: next()?,
        file: next()?,
        each: next()?,
        peer,
    })
}

fn append_to(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().append(true).create(true).open(path)?)
}

fn synced(file: &mut File, line: &[u8]) -> Result<()> {
    file.write_all(line)?;
    Ok(file.sync_data()?)
}

/// A thread for each file.
fn each(files: &mut [File], line: &[u8], slice: Duration) -> Result<f64> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .iter_mut()
            .map(|file| scope.spawn(move || rate(slice, || synced(file, line))))
            .collect();
        let rates = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a writer panicked"))?);
        rates.sum()
    })
}

/// One file whose thread writes what is waiting, syncs once and answers everybody.
struct Group {
    waiting: Option<mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Group {
    fn new(path: &Path) -> Result<Self> {
        let mut file = append_to(path)?;
        let (waiting, lines) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>();
        let thread = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut replies = Vec::new();
            while let Ok(first) = lines.recv() {
                for (line, reply) in std::iter::once(first).chain(lines.try_iter()) {
                    bytes.extend_from_slice(&line);
                    replies.push(reply);
                }
                synced(&mut file, &bytes)?;
                bytes.clear();
                for reply in replies.drain(..) {
                    // A writer whose time was up has gone.
                    let _ = reply.send(());
                }
            }
            Ok(())
        });
        Ok(Self {
            waiting: Some(waiting),
            thread: Some(thread),
        })
    }

    async fn run(&self, line: &[u8], writers: usize, slice: Duration) -> Result<f64> {
        let waiting = self.waiting.as_ref().context("the file is closed")?;
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..writers {
            let (waiting, line) = (waiting.clone(), line.to_vec());
            tasks.spawn(async move {
                let mut done = 0;
                while start.elapsed() < slice {
                    let (reply, answer) = oneshot::channel();
                    waiting.send((line.clone(), reply))?;
                    answer.await?;
                    done += 1;
                }
                anyhow::Ok(done)
            });
        }
        total(tasks, start).await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.waiting.take();
        if let Some(thread) = self.thread.take() {
            // An error of the thread has been told to whoever waited for an answer.
            let _ = thread.join();
        }
    }
}
