//! Benchmarks the chat: whether a long history slows it down.

mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use throughline::{ConflictPolicy, Expect, Message, NewEntry, Role, SessionId, Throughline};

use crate::chart::Chart;
use crate::machine::Machine;
use crate::report::{BenchReport, OutputArgs};
use crate::rounds::{Contender, Samples, run_rounds};
use crate::table::{Row, Target};
use crate::units::Unit;
use terminal::Terminal;

const ENTRIES: u64 = 100_000;
const RUNS: usize = 25;
const KEYS: usize = 200;
const QUESTION: &str = "Which port does the gateway listen on?";
const NOTE: &str = "Both use the offline agent and the default settings, including recall. The \
                    long session has 100,000 messages of about 100 bytes, all indexed; the \
                    other store is empty except for the messages of the benchmark itself. A \
                    start is timed until the prompt appears, or until the answer is printed \
                    and the process has exited; a key until the terminal shows it.";

/// Benchmark the chat
///
/// Starts `tl` on an empty store and on a session of 100,000 entries, and types.
#[derive(Debug, clap::Args)]
pub(crate) struct ChatArgs {
    /// The `tl` to start
    #[arg(long, value_name = "FILE")]
    tl: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

/// A home and a working folder.
struct ChatWorkspace<'a> {
    tl: &'a Path,
    home: PathBuf,
    work: PathBuf,
}

impl<'a> ChatWorkspace<'a> {
    fn new(tl: &'a Path, folder: &Path, name: &str) -> Result<Self> {
        let workspace = Self {
            tl,
            home: folder.join(name).join("home"),
            work: folder.join(name).join("work"),
        };
        std::fs::create_dir_all(&workspace.work)?;
        Ok(workspace)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.tl);
        command
            .args(words)
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("THROUGHLINE_HOME", &self.home)
            .env("TERM", "xterm-256color");
        command
    }

    fn run_tl(&self, words: &[&str]) -> Result<String> {
        let output = self.command(words).stdin(Stdio::null()).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tl {words:?}: {stderr}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Returns the seconds from the start to the end of one turn.
    fn time_turn(&self) -> Result<f64> {
        let start = Instant::now();
        let answer = self.run_tl(&["-p", QUESTION])?;
        let took = start.elapsed().as_secs_f64();
        ensure!(!answer.is_empty(), "no answer");
        Ok(took)
    }

    /// Returns the seconds from the start to the prompt.
    fn time_prompt(&self) -> Result<f64> {
        let start = Instant::now();
        let mut terminal = Terminal::start(self.command(&[]))?;
        terminal.wait_for_prompt()?;
        let took = start.elapsed().as_secs_f64();
        terminal.exit()?;
        Ok(took)
    }
}

pub(crate) fn run(args: &ChatArgs) -> Result<()> {
    let folder = args.output.create_temp_folder()?;
    let machine = Machine::detect(folder.path())?;
    let entries = ENTRIES / if args.output.quick { 10 } else { 1 };
    let tl = std::path::absolute(&args.tl)?;
    let empty = ChatWorkspace::new(&tl, folder.path(), "empty")?;
    let long = ChatWorkspace::new(&tl, folder.path(), "long")?;
    let id = long.run_tl(&["new", "--name", "long"])?;
    fill_session(&long.home.join("sessions.db"), &id, entries)?;
    long.run_tl(&["doctor", "--rebuild"])?;

    let mut findings = BenchReport::default();
    let mut compare = |name: &str, ours: &Samples, base: &Samples| {
        let row = Row::new(name, Unit::Time, ours);
        let row = row.against("the same on an empty store", base);
        findings.add_row(row.target(Target::AtMost(1.5)));
        let mut chart = Chart::new(format!("{name} (shorter is better)"), Unit::Time);
        chart.add_ours("100,000 entries", ours);
        chart.add_other("empty store", base);
        findings.add_chart(chart);
    };
    let turns = run_rounds(
        RUNS,
        vec![
            Contender::new("long", || long.time_turn()),
            Contender::new("empty", || empty.time_turn()),
        ],
    )?;
    compare("`tl -p`, start to answer", &turns[0], &turns[1]);
    let prompts = run_rounds(
        RUNS,
        vec![
            Contender::new("long", || long.time_prompt()),
            Contender::new("empty", || empty.time_prompt()),
        ],
    )?;
    compare("`tl`, start to prompt", &prompts[0], &prompts[1]);
    let keys = {
        let mut on_long = open_chat(&long)?;
        let mut on_empty = open_chat(&empty)?;
        let keys = run_rounds(
            KEYS,
            vec![
                Contender::new("long", || on_long.time_key()),
                Contender::new("empty", || on_empty.time_key()),
            ],
        )?;
        on_long.exit()?;
        on_empty.exit()?;
        keys
    };
    compare("a key, until it is shown", &keys[0], &keys[1]);
    let notes = [NOTE.to_owned()];
    findings.publish(&args.output, &machine, "The chat", "chat", &notes)
}

/// Opens a chat and waits for its prompt.
fn open_chat(workspace: &ChatWorkspace<'_>) -> Result<Terminal> {
    let mut terminal = Terminal::start(workspace.command(&[]))?;
    terminal.wait_for_prompt()?;
    Ok(terminal)
}

/// Fills a session with messages.
fn fill_session(store: &Path, id: &str, entries: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let tl = Throughline::open(&format!("sqlite:{}", store.display())).await?;
        let session = tl.session(&id.parse::<SessionId>()?).await?;
        let mut batch: Vec<NewEntry> = Vec::new();
        for number in 1..=entries {
            let role = if number % 2 == 1 {
                Role::User
            } else {
                Role::Assistant
            };
            let text = format!(
                "Step {number}: module {} of the gateway listens on port {} and logs to file {}.",
                number % 977,
                1_024 + number % 60_000,
                number % 4_099
            );
            batch.push(session.new_entry(Message::text(role, text)));
            if batch.len() == 1_000 || number == entries {
                let batch = std::mem::take(&mut batch);
                session
                    .append_all(batch, Expect::Any, ConflictPolicy::Reject)
                    .await?;
            }
        }
        tl.close().await?;
        anyhow::Ok(())
    })
    .context("filling the long session")
}
