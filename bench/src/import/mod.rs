//! Importing: how fast other agents' history comes in, and how fast it is seen that nothing
//! is new.

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

/// Messages of the history, and of the shorter one that memory is compared with.
const MESSAGES: u64 = 1_000_000;
const FEWER_MESSAGES: u64 = 100_000;
const ROUNDS: usize = 3;
const FORMATS: [SourceFormat; 4] = [
    SourceFormat::ClaudeCode,
    SourceFormat::Codex,
    SourceFormat::Gemini,
    SourceFormat::Pi,
];
/// Bytes of a session in one file; and of one line, which is held whole.
const FILE_BYTES: [u64; 3] = [50_000_000, 500_000_000, 5_000_000_000];
const LINE_BYTES: usize = 50_000_000;
const NOTE: &str = "Generated history, one session a file of 10,000 messages: in turn a \
                    question, a thought with the call of a tool, the fifty lines it read, and an \
                    answer, each as that agent writes it down: Codex says most things \
                    twice, as an item and as an event, and counts tokens with every \
                    answer; Gemini CLI writes a message again when its tools have \
                    answered. 1 kB a message on average. Ours is `tl import --no-wait` from its \
                    start to its end: read, turned into entries and durable in a SQLite store; \
                    indexing comes after and is not in it. The other reads the same bytes and \
                    parses every line with serde_json, and keeps nothing. Importing again and \
                    memory are those of `tl import` with the index, but for the files of one \
                    session (`--no-wait`). Memory is what the program has of its own, without \
                    the files that it maps.";

/// Measure importing
///
/// Against reading the same bytes and parsing them with serde_json alone.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The `tl` to start
    #[arg(long, value_name = "FILE")]
    tl: PathBuf,
    /// Only the speed of this format (may be repeated)
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
            let place = folder.path().join(format!("{agent}-{messages}"));
            let bytes = history::write_history(agent, &place, messages)?;
            measure_speed(&mut findings, &tl, agent, &place, messages, bytes)?;
            // The command's are Claude Code's; the others' room is wanted.
            if agent != SourceFormat::ClaudeCode {
                fs::remove_dir_all(&place)?;
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
    place: &Path,
    messages: u64,
    bytes: u64,
) -> Result<()> {
    let home = place.with_extension("home");
    let samples = run_rounds(
        ROUNDS,
        vec![
            Contender::new("import", || {
                let ran = run_import(tl, agent, place, &home, &["--no-wait"])?;
                fs::remove_dir_all(&home)?;
                let new = ran.new;
                ensure!(new == messages, "{new} of {messages} messages came in");
                Ok(to_f64(bytes) / ran.seconds)
            }),
            Contender::new("parse", || {
                let took = parse_lines(agent, place)?;
                Ok(to_f64(bytes) / took.as_secs_f64())
            }),
        ],
    )?;
    let each = to_f64(messages) / to_f64(bytes);
    let rate = Samples(samples[0].0.iter().map(|bytes| bytes * each).collect());
    let name = format!("{agent}, {messages} messages");
    let row = Row::new(format!("{name}, bytes a second"), Unit::Bytes, &samples[0]);
    let row = row.against("serde_json alone", &samples[1]);
    findings.add_row(row.target(Target::AtLeast(0.3)));
    findings.add_row(Row::new(
        format!("{name}, messages a second"),
        Unit::Rate,
        &rate,
    ));
    let mut chart = Chart::new(format!("{name}: bytes a second"), Unit::Bytes);
    chart.add_ours("import", &samples[0]);
    chart.add_other("serde_json alone", &samples[1]);
    findings.add_chart(chart);
    Ok(())
}

/// The same bytes, each line parsed and let go.
fn parse_lines(agent: SourceFormat, place: &Path) -> Result<Duration> {
    let start = Instant::now();
    let mut lines = 0_u64;
    for source in agent.find_sources(place) {
        for line in BufReader::new(fs::File::open(&source.path)?).lines() {
            let value: serde_json::Value = serde_json::from_str(&line?)?;
            lines += u64::from(value.is_object());
        }
    }
    ensure!(lines > 0, "there was nothing to parse");
    Ok(start.elapsed())
}

/// The command: the first time, again, and how much memory it takes.
fn measure_reimport(
    findings: &mut BenchReport,
    tl: &Path,
    folder: &Path,
    messages: u64,
    fewer: u64,
) -> Result<()> {
    let mut peaks = Vec::new();
    for count in [fewer, messages] {
        let place = folder.join(format!("{}-{count}", SourceFormat::ClaudeCode));
        let home = folder.join(format!("home-{count}"));
        let first = run_import(tl, SourceFormat::ClaudeCode, &place, &home, &[])?;
        peaks.push(Samples(vec![first.peak]));
        if count == messages {
            let mut times = Vec::new();
            for _ in 0..5 {
                times.push(run_import(tl, SourceFormat::ClaudeCode, &place, &home, &[])?.seconds);
            }
            let often = Samples(times);
            let first = Samples(vec![first.seconds; 5]);
            let row = Row::new("`tl import` again, nothing changed", Unit::Time, &often);
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

/// The memory that one large file takes, and one large line.
fn measure_large_files(
    findings: &mut BenchReport,
    tl: &Path,
    folder: &Path,
    scale: u64,
) -> Result<()> {
    let peak_of = |name: &str, write: &dyn Fn(&Path) -> Result<()>| -> Result<Samples> {
        let place = folder.join(name);
        let home = folder.join(format!("home-{name}"));
        write(&place)?;
        let ran = run_import(tl, SourceFormat::ClaudeCode, &place, &home, &["--no-wait"])?;
        fs::remove_dir_all(&place)?;
        fs::remove_dir_all(&home)?;
        Ok(Samples(vec![ran.peak]))
    };
    let mut first = None;
    for bytes in FILE_BYTES.map(|bytes| bytes / scale) {
        let peak = peak_of("long", &|place| history::write_long_session(place, bytes))?;
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
    let peak = peak_of("wide", &|place| history::write_long_line(place, LINE_BYTES))?;
    let name = format!("Peak memory, one line of {}", megabytes(LINE_BYTES as u64));
    findings.add_row(Row::new(name, Unit::Bytes, &peak));
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}

/// A run of the command.
struct ImportRun {
    seconds: f64,
    /// The most memory it had of its own.
    peak: f64,
    /// The messages that were new.
    new: u64,
}

fn run_import(
    tl: &Path,
    agent: SourceFormat,
    place: &Path,
    home: &Path,
    also: &[&str],
) -> Result<ImportRun> {
    // A file, which never fills up as a pipe would that is read at the end.
    let mut said = tempfile::tempfile()?;
    let start = Instant::now();
    let mut child = Command::new(tl)
        .args(["import", "--json", "--from", agent.name(), "--path"])
        .arg(place)
        .args(also)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("THROUGHLINE_HOME", home)
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
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
    said.rewind()?;
    let said: serde_json::Value = serde_json::from_reader(said)?;
    let new = said["agents"][0]["appended"].as_u64();
    Ok(ImportRun {
        seconds,
        peak,
        new: new.context("tl does not say what is new")?,
    })
}
