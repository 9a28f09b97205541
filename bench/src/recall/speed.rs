//! Measures the speed of search and the cost of the index over many messages.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use throughline_model::Owner;
use throughline_recall::{Batch, FolderIndex, Index as _, Mode, Query, Scope};

use super::BenchReport;
use super::corpus::{Vocabulary, make_passage};
use super::fts5::{Fts5, split_words};
use crate::chart::Chart;
use crate::rounds::Samples;
use crate::table::{Row, Target};
use crate::units::{Unit, to_f64};

/// Messages per batch.
const BATCH: u64 = 5000;
/// Queries per round.
const QUERIES: u64 = 100;
const ROUNDS: u64 = 5;

/// Query times: the median and the 99th percentile of each round.
#[derive(Default)]
struct QueryTimes {
    median: Samples,
    slowest: Samples,
}

impl QueryTimes {
    fn add_round(&mut self, mut seconds: Vec<f64>) {
        seconds.sort_by(f64::total_cmp);
        self.median.0.push(seconds[seconds.len() / 2]);
        // With a hundred queries per round, the second slowest is the 99th percentile.
        let slow = seconds.len().saturating_sub(2);
        self.slowest.0.push(seconds[slow]);
    }
}

/// Measures with that many messages.
pub(crate) fn measure(dir: &Path, messages: u64, findings: &mut BenchReport) -> Result<()> {
    let vocabulary = Vocabulary::new();
    let owner = Owner::local();
    let folder = dir.join("index");
    let lines = dir.join("messages.jsonl");
    let mut fts5 = Fts5::new(&dir.join("fts5.db"))?;

    let (mut ours, mut theirs) = (0.0, 0.0);
    let mut text_bytes = 0;
    {
        let index = FolderIndex::open(&folder)?;
        let Some(mut feeder) = index.indexer()? else {
            bail!("another process is writing to {}", folder.display());
        };
        let mut file = std::io::BufWriter::new(fs::File::create(&lines)?);
        let mut number = 0;
        while number < messages {
            let end = messages.min(number + BATCH);
            let passages = (number..end).map(|one| make_passage(&vocabulary, &owner, one));
            let passages: Vec<_> = passages.collect::<Result<_>>()?;
            text_bytes += passages
                .iter()
                .map(|one| one.text.len() as u64)
                .sum::<u64>();
            for one in &passages {
                serde_json::to_writer(&mut file, one)?;
                file.write_all(b"\n")?;
            }
            let start = Instant::now();
            fts5.add(passages.iter().map(|one| one.text.as_str()))?;
            theirs += start.elapsed().as_secs_f64();
            let start = Instant::now();
            feeder.index_batch(Batch {
                passages,
                removed: Vec::new(),
                after: number,
                upto: end,
                anchors: Vec::new(),
            })?;
            ours += start.elapsed().as_secs_f64();
            number = end;
            if number % 100_000 == 0 {
                eprintln!("{number} messages");
            }
        }
        file.flush()?;
        let start = Instant::now();
        feeder.finish()?;
        ours += start.elapsed().as_secs_f64();
    }
    let count = to_f64(messages);
    let at = crate::units::format_number(count);
    findings.add_row(
        Row::new("messages indexed", Unit::Rate, &Samples(vec![count / ours]))
            .against("FTS5", &Samples(vec![count / theirs])),
    );
    let size =
        |path: &Path| -> Result<Samples> { Ok(Samples(vec![to_f64(disk_size(path)?) / count])) };
    let name = format!(
        "bytes on disk per message of {} bytes",
        text_bytes / messages
    );
    findings.add_row(
        Row::new(name, Unit::Number, &size(&folder)?)
            .against("FTS5, with its text", &size(&dir.join("fts5.db"))?),
    );

    let start = Instant::now();
    let index = FolderIndex::open(&folder)?;
    let opened = start.elapsed().as_secs_f64();
    findings.add_row(Row::new(
        "opening the index",
        Unit::Time,
        &Samples(vec![opened]),
    ));

    let ask = |mode: Mode, text: &str| -> Result<()> {
        let query = Query {
            mode,
            ..Query::new(text, Scope::new(owner.clone()))
        };
        let found = index.search(&query)?;
        if found.hits.is_empty() {
            bail!("nothing found for {text:?}");
        }
        Ok(())
    };
    let (mut hybrid, mut text, mut full, mut lines_read) = (
        QueryTimes::default(),
        QueryTimes::default(),
        QueryTimes::default(),
        QueryTimes::default(),
    );
    let grep = Command::new("rg").arg("--version").output().is_ok();
    for round in 0..=ROUNDS {
        let questions: Vec<String> = (0..QUERIES)
            .map(|one| vocabulary.query(round * QUERIES + one, messages))
            .collect();
        let timed = |ask: &mut dyn FnMut(&str) -> Result<()>, few: usize| -> Result<Vec<f64>> {
            let times = questions.iter().take(few).map(|question| {
                let start = Instant::now();
                ask(question)?;
                Ok(start.elapsed().as_secs_f64())
            });
            times.collect()
        };
        let all = usize::try_from(QUERIES)?;
        let times = [
            timed(&mut |question| ask(Mode::Hybrid, question), all)?,
            timed(&mut |question| ask(Mode::Text, question), all)?,
            timed(
                &mut |question| fts5.search(split_words(question), 20).map(drop),
                all / 4,
            )?,
            if grep {
                timed(&mut |question| run_ripgrep(&lines, question), 3)?
            } else {
                vec![f64::NAN]
            },
        ];
        // The first round fills the caches.
        if round > 0 {
            let into = [&mut hybrid, &mut text, &mut full, &mut lines_read];
            for (into, times) in into.into_iter().zip(times) {
                into.add_round(times);
            }
        }
    }
    findings.add_row(
        Row::new(
            format!("hybrid search of {at}, median"),
            Unit::Time,
            &hybrid.median,
        )
        .against("FTS5, any of the words", &full.median)
        .target(Target::AtMost(1.0)),
    );
    findings.add_row(
        Row::new(
            format!("hybrid search of {at}, 99th percentile"),
            Unit::Time,
            &hybrid.slowest,
        )
        .against("FTS5, any of the words", &full.slowest)
        .target(Target::AtMost(1.0)),
    );
    findings.add_row(
        Row::new(
            format!("text search of {at}, median"),
            Unit::Time,
            &text.median,
        )
        .against("FTS5, any of the words", &full.median),
    );
    let name = format!("hybrid search of {at}, median");
    findings.add_row(if grep {
        Row::new(name, Unit::Time, &hybrid.median)
            .against("rg over lines of JSON", &lines_read.median)
    } else {
        Row::not_measured(format!("{name}, against rg"), "rg is not installed")
    });
    let memory = Samples(vec![to_f64(anonymous_memory()?)]);
    findings.add_row(Row::new(
        "memory while searching, besides mapped files",
        Unit::Bytes,
        &memory,
    ));
    let mut chart = Chart::new(format!("Search of {at} messages, median"), Unit::Time);
    chart.add_ours("Throughline, hybrid", &hybrid.median);
    chart.add_ours("Throughline, text", &text.median);
    chart.add_other("FTS5, any of the words", &full.median);
    if grep {
        chart.add_other("rg over lines of JSON", &lines_read.median);
    }
    findings.add_chart(chart);
    Ok(())
}

/// Finds all lines with any of the words with `rg`, as a user would.
fn run_ripgrep(lines: &Path, question: &str) -> Result<()> {
    let mut rg = Command::new("rg");
    rg.arg("--ignore-case").stdout(Stdio::null());
    for word in split_words(question).skip(3) {
        rg.args(["-e", word]);
    }
    rg.arg(lines).status().context("rg cannot be run")?;
    Ok(())
}

/// Returns the bytes of a file, or of all files in a folder.
fn disk_size(path: &Path) -> Result<u64> {
    if path.is_file() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut sum = 0;
    let mut folders = vec![PathBuf::from(path)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sum += fs::metadata(path)?.len();
            }
        }
    }
    Ok(sum)
}

/// Returns the anonymous memory of this process.
fn anonymous_memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib
        .context("the kernel does not report it")?
        .parse::<u64>()?
        * 1024)
}
