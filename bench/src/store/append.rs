//! Measures durable appends, by one writer and by many.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::{Bench, BenchReport, PeerTask};
use crate::append_load::{AppendLoad, total_rate};
use crate::chart::Chart;
use crate::peers::Peers;
use crate::rounds::{Contender, Samples, measure_rate, run_rounds};
use crate::sample;
use crate::table::{Row, Target};
use crate::units::Unit;

const WRITERS: [usize; 4] = [1, 16, 64, 256];

/// The samples of each contender.
struct AppendSamples {
    ours: Samples,
    file: Samples,
    file_per_session: Samples,
    peer: Result<Samples, String>,
}

pub(super) fn measure(bench: &Bench, peers: &Peers, findings: &mut BenchReport) -> Result<()> {
    let mut curve = Chart::new("Durable appends by number of writers", Unit::Rate);
    for writers in WRITERS {
        let sampled = collect_samples(bench, peers, writers)?;
        add_rows(writers, &sampled, findings);
        curve.add_ours(format!("Throughline, {writers}"), &sampled.ours);
        curve.add_other(format!("one file, group commit, {writers}"), &sampled.file);
        curve.add_other(
            format!("one file per session, {writers}"),
            &sampled.file_per_session,
        );
        if matches!(writers, 1 | 64) {
            findings.add_chart(make_chart(writers, &sampled));
        }
    }
    findings.add_chart(curve);
    Ok(())
}

fn add_rows(writers: usize, sampled: &AppendSamples, findings: &mut BenchReport) {
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
    findings.add_row(set(row().against(file, &sampled.file), target));
    if writers > 1 {
        let target = (writers == 64).then_some(Target::AtLeast(8.0));
        let each = row().against(
            "one plain file per session, each synced",
            &sampled.file_per_session,
        );
        findings.add_row(set(each, target));
    }
    findings.add_row(match &sampled.peer {
        Ok(samples) => {
            let target = (writers == 64).then_some(Target::AtLeast(20.0));
            set(
                row().against("openai-agents SQLiteSession", samples),
                target,
            )
        }
        Err(why) => Row::not_measured(format!("{name}, openai-agents SQLiteSession"), why),
    });
}

fn make_chart(writers: usize, sampled: &AppendSamples) -> Chart {
    let title = match writers {
        1 => "Durable appends, one writer".to_owned(),
        many => format!("Durable appends, {many} writers to sessions of their own"),
    };
    let mut chart = Chart::new(title, Unit::Rate);
    if writers == 1 {
        chart.add_other("plain file, synced", &sampled.file);
    } else {
        chart.add_other("one plain file, group commit", &sampled.file);
    }
    chart.add_ours("Throughline", &sampled.ours);
    if writers > 1 {
        chart.add_other("one plain file per session", &sampled.file_per_session);
    }
    if let Ok(peer) = &sampled.peer {
        chart.add_other("SQLiteSession", peer);
    }
    chart
}

fn collect_samples(bench: &Bench, peers: &Peers, writers: usize) -> Result<AppendSamples> {
    let folder = bench.create_folder(&format!("append-{writers}"))?;
    let store = Arc::new(sample::create_store(&folder, "store.db")?);
    let ours = AppendLoad::new(store, &bench.clock, writers);
    let ours = bench.runtime.block_on(ours)?;
    let line = sample::jsonl_line(&bench.clock)?;
    let slice = bench.pace.slice;
    let mut plain = open_for_append(&folder.join("plain.jsonl"))?;
    let group = GroupCommitFile::new(&folder.join("group.jsonl"))?;
    let mut files = (0..writers)
        .map(|n| open_for_append(&folder.join(format!("session-{n}.jsonl"))))
        .collect::<Result<Vec<_>>>()?;
    let mut contenders = vec![
        Contender::new("Throughline", || {
            ours.run(&bench.runtime, &bench.clock, slice)
        }),
        Contender::new("one plain file", || match writers {
            1 => measure_rate(slice, || write_synced(&mut plain, &line)),
            many => bench.runtime.block_on(group.run(&line, many, slice)),
        }),
        Contender::new("one file per session", || {
            measure_file_per_session(&mut files, &line, slice)
        }),
    ];
    if peers.are_available() {
        contenders.push(Contender::new("SQLiteSession", || {
            peers.measure_rate(&PeerTask::Session { writers }, slice)
        }));
    }
    let mut samples = run_rounds(bench.pace.rounds, contenders)?;
    let peer = samples
        .drain(3..)
        .next()
        .ok_or_else(|| peers.unavailable_reason());
    let mut samples = samples.into_iter();
    let mut next = || samples.next().context("a contender has no samples");
    Ok(AppendSamples {
        ours: next()?,
        file: next()?,
        file_per_session: next()?,
        peer,
    })
}

fn open_for_append(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().append(true).create(true).open(path)?)
}

fn write_synced(file: &mut File, line: &[u8]) -> Result<()> {
    file.write_all(line)?;
    Ok(file.sync_data()?)
}

/// Appends to each file from its own thread, syncing each time.
fn measure_file_per_session(files: &mut [File], line: &[u8], slice: Duration) -> Result<f64> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .iter_mut()
            .map(|file| scope.spawn(move || measure_rate(slice, || write_synced(file, line))))
            .collect();
        let rates = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow!("a writer panicked"))?);
        rates.sum()
    })
}

/// One file whose thread writes all queued lines, syncs once and replies to every writer.
struct GroupCommitFile {
    waiting: Option<mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl GroupCommitFile {
    fn new(path: &Path) -> Result<Self> {
        let mut file = open_for_append(path)?;
        let (waiting, lines) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>();
        let thread = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut replies = Vec::new();
            while let Ok(first) = lines.recv() {
                for (line, reply) in std::iter::once(first).chain(lines.try_iter()) {
                    bytes.extend_from_slice(&line);
                    replies.push(reply);
                }
                write_synced(&mut file, &bytes)?;
                bytes.clear();
                for reply in replies.drain(..) {
                    // A writer whose time was up has stopped waiting.
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
        total_rate(tasks, start).await
    }
}

impl Drop for GroupCommitFile {
    fn drop(&mut self) {
        self.waiting.take();
        if let Some(thread) = self.thread.take() {
            // An error in the thread has already failed the waiting writers.
            let _ = thread.join();
        }
    }
}
