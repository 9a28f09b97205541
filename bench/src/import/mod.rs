//! Benchmarks imports: the speed of importing other agents' history, and of detecting that
//! nothing is new.

mod history;

use std::fs;
use std::io::{BufRead, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use throughline_formats::SourceFormat;

use crate::chart::Chart;
use crate::machine::Machine;
use crate::report::{BenchReport, OutputArgs};
use crate::rounds::{Contender, Samples, run_rounds};
use crate::table::{Row, Target};
use crate::units::{Unit, to_f64};

/// Messages in the history, and in the shorter one for comparing memory.
const MESSAGES: u64 = 1_000_000;
const FEWER_MESSAGES: u64 = 100_000;
const ROUNDS: usize = 3;
const FORMATS: [SourceFormat; 4] = [
    SourceFormat::ClaudeCode,
    SourceFormat::Codex,
    SourceFormat::Gemini,
    SourceFormat::Pi,
];
/// Sizes of single-file sessions in bytes, and of a single line, which is held in memory whole.
const FILE_BYTES: [u64; 3] = [50_000_000, 500_000_000, 5_000_000_000];
const LINE_BYTES: usize = 50_000_000;
const NOTE: &str = "Generated history, one session per file of 10,000 messages: turns of a \
                    question, a tool call with reasoning, the fifty lines it read, and an \
                    answer, each in the agent's own format. Codex writes most messages twice, \
                    as an item and as an event, and token counts with every answer; Gemini CLI \
                    writes a message again when its tools have answered. A message has 1 kB on \
                    average. Throughline's figure is the whole run of `tl import --no-wait`: \
                    reading, converting to entries and storing them durably in SQLite, without \
                    indexing, which follows. The baseline reads the same bytes and parses \
                    every line with serde_json, and stores nothing. Repeated imports and \
                    memory are measured with `tl import` including the index, except for the \
                    single-session files (`--no-wait`). Memory is private memory, without \
                    mapped files.";

/// Benchmark imports
///
/// Compared with reading the same bytes and parsing them with serde_json alone.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The `tl` to start
    #[arg(long, value_name = "FILE")]
    tl: PathBuf,
    /// Measure only the speed of this format (may be repeated)
    #[arg(long, value_name = "NAME")]
    from: Vec<SourceFormat>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &ImportArgs) -> Result<()> {
    let folder = args.output.create_temp_folder()?;
    let machine = Machine::detect(folder.path())?;
    let scale = if args.output.quick { 20 } else { 1 };
    let mut findings = BenchReport::default();
    let all = args.from.is_empty();
    let tl = std::path::absolute(&args.tl)?;
    for agent in FORMATS.into_iter().filter(|a| all || args.from.contains(a)) {
        for messages in [FEWER_MESSAGES / scale, MESSAGES / scale] {
            let history_folder = folder.path().join(format!("{agent}-{messages}"));
            let bytes = history::write_history(agent, &history_folder, messages)?;
            measure_speed(&mut findings, &tl, agent, &history_folder, messages, bytes)?;
            // The reimport measurement uses Claude Code's files; the others are deleted to free
            // disk space.
            if agent != SourceFormat::ClaudeCode {
                fs::remove_dir_all(&history_folder)?;
            }
        }
    }
    if all {
        measure_reimport(
            &mut findings,
            &tl,
            folder.path(),
            MESSAGES / scale,
            FEWER_MESSAGES / scale,
        )?;
        measure_large_files(&mut findings, &tl, folder.path(), scale)?;
    }
    let notes = [NOTE.to_owned()];
    findings.publish(&args.output, &machine, "Importing", "import", &notes)
}

fn measure_speed(
    findings: &mut BenchReport,
    tl: &Path,
    agent: SourceFormat,
    history_folder: &Path,
    messages: u64,
    bytes: u64,
) -> Result<()> {
    let home = history_folder.with_extension("home");
    let samples = run_rounds(
        ROUNDS,
        vec![
            Contender::new("import", || {
                let ran = run_import(tl, agent, history_folder, &home, &["--no-wait"])?;
                fs::remove_dir_all(&home)?;
                let new = ran.new;
                ensure!(
                    new == messages,
                    "{new} of {messages} messages were imported"
                );
                Ok(to_f64(bytes) / ran.seconds)
            }),
            Contender::new("parse", || {
                let took = parse_lines(agent, history_folder)?;
                Ok(to_f64(bytes) / took.as_secs_f64())
            }),
        ],
    )?;
    let each = to_f64(messages) / to_f64(bytes);
    let rate = Samples(samples[0].0.iter().map(|bytes| bytes * each).collect());
    let name = format!("{agent}, {messages} messages");
    let row = Row::new(
        format!("{name}, bytes per second"),
        Unit::Bytes,
        &samples[0],
    );
    let row = row.against("serde_json alone", &samples[1]);
    findings.add_row(row.target(Target::AtLeast(0.3)));
    findings.add_row(Row::new(
        format!("{name}, messages per second"),
        Unit::Rate,
        &rate,
    ));
    let mut chart = Chart::new(format!("{name}: bytes per second"), Unit::Bytes);
    chart.add_ours("import", &samples[0]);
    chart.add_other("serde_json alone", &samples[1]);
    findings.add_chart(chart);
    Ok(())
}

/// Reads the same bytes, parsing and dropping each line.
fn parse_lines(agent: SourceFormat, history_folder: &Path) -> Result<Duration> {
    let start = Instant::now();
    let mut lines = 0_u64;
    for source in agent.find_sources(history_folder) {
        for line in BufReader::new(fs::File::open(&source.path)?).lines() {
            let value: serde_json::Value = serde_json::from_str(&line?)?;
            lines += u64::from(value.is_object());
        }
    }
    ensure!(lines > 0, "there was nothing to parse");
    Ok(start.elapsed())
}

/// Measures `tl import`: the first time, a second time, and its memory.
fn measure_reimport(
    findings: &mut BenchReport,
    tl: &Path,
    folder: &Path,
    messages: u64,
    fewer: u64,
) -> Result<()> {
    let mut peaks = Vec::new();
    for count in [fewer, messages] {
        let history_folder = folder.join(format!("{}-{count}", SourceFormat::ClaudeCode));
        let home = folder.join(format!("home-{count}"));
        let first = run_import(tl, SourceFormat::ClaudeCode, &history_folder, &home, &[])?;
        peaks.push(Samples(vec![first.peak]));
        if count == messages {
            let mut times = Vec::new();
            for _ in 0..5 {
                times.push(
                    run_import(tl, SourceFormat::ClaudeCode, &history_folder, &home, &[])?.seconds,
                );
            }
            let often = Samples(times);
            let first = Samples(vec![first.seconds; 5]);
            let row = Row::new("repeated `tl import`, nothing new", Unit::Time, &often);
            let row = row.against("the first time", &first);
            findings.add_row(row.target(Target::AtMost(1.0 / 50.0)));
        }
    }
    let row = Row::new(
        format!("Peak memory, {messages} messages"),
        Unit::Bytes,
        &peaks[1],
    );
    let row = row.against(format!("{fewer} messages"), &peaks[0]);
    findings.add_row(row.target(Target::AtMost(1.5)));
    Ok(())
}

/// Measures the memory for one large file, and for one long line.
fn measure_large_files(
    findings: &mut BenchReport,
    tl: &Path,
    folder: &Path,
    scale: u64,
) -> Result<()> {
    let peak_of = |name: &str, write: &dyn Fn(&Path) -> Result<()>| -> Result<Samples> {
        let history_folder = folder.join(name);
        let home = folder.join(format!("home-{name}"));
        write(&history_folder)?;
        let ran = run_import(
            tl,
            SourceFormat::ClaudeCode,
            &history_folder,
            &home,
            &["--no-wait"],
        )?;
        fs::remove_dir_all(&history_folder)?;
        fs::remove_dir_all(&home)?;
        Ok(Samples(vec![ran.peak]))
    };
    let mut first = None;
    for bytes in FILE_BYTES.map(|bytes| bytes / scale) {
        let peak = peak_of("long", &|history_folder| {
            history::write_long_session(history_folder, bytes)
        })?;
        let row = Row::new(
            format!("Peak memory, one file of {}", megabytes(bytes)),
            Unit::Bytes,
            &peak,
        );
        match &first {
            None => {
                findings.add_row(row);
                first = Some((bytes, peak));
            }
            Some((fewer, least)) => {
                let row = row.against(format!("one of {}", megabytes(*fewer)), least);
                findings.add_row(row.target(Target::AtMost(1.5)));
            }
        }
    }
    let peak = peak_of("wide", &|history_folder| {
        history::write_long_line(history_folder, LINE_BYTES)
    })?;
    let name = format!("Peak memory, one line of {}", megabytes(LINE_BYTES as u64));
    findings.add_row(Row::new(name, Unit::Bytes, &peak));
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// The result of running `tl import`.
struct ImportRun {
    seconds: f64,
    /// Its peak private memory.
    peak: f64,
    /// The number of new messages.
    new: u64,
}

fn run_import(
    tl: &Path,
    agent: SourceFormat,
    history_folder: &Path,
    home: &Path,
    also: &[&str],
) -> Result<ImportRun> {
    // A file rather than a pipe, which would fill up as it is read only at the end.
    let mut output = tempfile::tempfile()?;
    let start = Instant::now();
    let mut child = Command::new(tl)
        .args(["import", "--json", "--from", agent.name(), "--path"])
        .arg(history_folder)
        .args(also)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("THROUGHLINE_HOME", home)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .spawn()
        .context("starting tl")?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = 0.0_f64;
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        if let Ok(text) = fs::read_to_string(&status)
            && let Some(line) = text.lines().find(|line| line.starts_with("RssAnon:"))
            && let Some(kilobytes) = line.split_whitespace().nth(1)
        {
            peak = peak.max(kilobytes.parse::<f64>().unwrap_or(0.0) * 1024.0);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let seconds = start.elapsed().as_secs_f64();
    ensure!(ended.success(), "tl import failed");
    output.rewind()?;
    let output: serde_json::Value = serde_json::from_reader(output)?;
    let new = output["agents"][0]["appended"].as_u64();
    Ok(ImportRun {
        seconds,
        peak,
        new: new.context("tl did not report new messages")?,
    })
}
