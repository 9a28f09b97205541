//! Our own formats: message lines, logs and documents.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde_json::json;
use throughline::glance::counted;
use throughline::{
    Birth, Identity, Importer, Incoming, IncomingEntry, IncomingSession, StoredEntry,
};
use throughline_formats::{LogItem, LogItems, MessageLines, is_log, read_document};

use super::ImportArgs;
use crate::app::App;
use crate::commands::append::is_future;
use crate::report::Refusal;

/// Entries of a log adopted in one go.
const AT_ONCE: usize = 1_000;
/// Bad lines told one by one.
const TOLD: usize = 20;

/// What is in a file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    /// One JSON message a line, of any sessions; or what `tl export` wrote as jsonl
    Jsonl,
    /// One session as `tl export --format json` wrote it
    Json,
}

/// What an import did.
#[derive(Debug, Default)]
struct Done {
    created: u64,
    appended: u64,
    known: u64,
    bad: Vec<(u64, String)>,
}

pub(super) async fn run(app: &App, file: &Path, args: &ImportArgs) -> Result<ExitCode> {
    if args.dry_run {
        return Err(Refusal::invalid("--dry-run is for the sessions of other agents").into());
    }
    let bar = app.ui.progress("Importing", "bytes");
    let (mut reader, size) = open(app, file)?;
    bar.set_length(size.unwrap_or(0));
    let done = match (args.format, first_line(&mut reader)?) {
        (Some(Format::Json), _) | (None, First::Document) => document(app, &mut reader).await,
        (_, First::Log) => log(app, reader, &bar).await,
        (_, First::Message | First::Document) => messages(app, reader, &bar).await,
    };
    bar.finish_and_clear();
    let code = tell(app, &done?)?;
    super::index(app, args).await?;
    Ok(code)
}

type Input = BufReader<Box<dyn Read>>;

fn open(app: &App, path: &Path) -> Result<(Input, Option<u64>)> {
    // Large enough to see the first line of a log whole.
    let buffered = |input: Box<dyn Read>| BufReader::with_capacity(1 << 20, input);
    if path.as_os_str() == "-" {
        return Ok((buffered(Box::new(std::io::stdin())), None));
    }
    let file = File::open(app.path(path)).map_err(|error| Refusal {
        what: format!("{} cannot be read: {error}", path.display()),
        hint: None,
        kind: throughline::ErrorKind::NotFound,
    })?;
    let size = file.metadata().ok().map(|metadata| metadata.len());
    Ok((buffered(Box::new(file)), size))
}

/// What the first line of a file says of the rest.
enum First {
    Log,
    Document,
    Message,
}

/// Looks at the first line without taking it.
fn first_line(reader: &mut Input) -> Result<First> {
    let seen = reader.fill_buf().context("the input cannot be read")?;
    let line = seen.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(match std::str::from_utf8(line) {
        Ok(line) if is_log(line) => First::Log,
        Ok(line) if line.starts_with("{\"throughline\":") => First::Document,
        _ => First::Message,
    })
}

async fn messages(app: &App, reader: Input, bar: &ProgressBar) -> Result<Done> {
    let mut importer = Importer::new(app.tl().await?.clone());
    let mut done = Done::default();
    let now = app.tl().await?.now();
    let mut lines = MessageLines::new(reader);
    while let Some(next) = lines.next() {
        let (number, line) = next.context("the input cannot be read")?;
        match line {
            Err(error) => done.bad.push((number, error.to_string())),
            Ok(line) => match line.session {
                None => done.bad.push((number, "it names no session".to_owned())),
                Some(session) => {
                    let at = line.at.filter(|at| !is_future(*at, now));
                    if at != line.at {
                        let what = "its time is in the future; now is taken";
                        app.ui.warn(format_args!("line {number}: {what}"));
                    }
                    let session = IncomingSession {
                        id: session,
                        at,
                        name: line.name,
                        project: line.project,
                        ..IncomingSession::default()
                    };
                    let entry = IncomingEntry {
                        identity: line.external_id.map_or(Identity::Content, Identity::Own),
                        author: line.author,
                        ..IncomingEntry::message(number, None, at, line.message)
                    };
                    importer.take(Incoming::Session(Box::new(session))).await?;
                    importer.take(Incoming::Entry(Box::new(entry))).await?;
                }
            },
        }
        bar.set_position(lines.bytes());
    }
    let report = importer.finish().await?;
    done.created = report.created;
    done.appended = report.appended;
    done.known = report.known;
    for (line, error) in report.failed {
        done.bad.push((line, error.to_string()));
    }
    done.bad.sort_by_key(|(line, _)| *line);
    Ok(done)
}

/// Sessions as `tl export` wrote them.
async fn log(app: &App, reader: Input, bar: &ProgressBar) -> Result<Done> {
    let mut done = Done::default();
    let mut adopting: Option<Adopting> = None;
    let mut items = LogItems::new(reader);
    while let Some(next) = items.next() {
        let (number, item) = next.context("the input cannot be read")?;
        match item {
            Err(error) => done.bad.push((number, error.to_string())),
            Ok(LogItem::Session { birth, .. }) => {
                if let Some(finished) = adopting.take() {
                    finished.flush(app, &mut done).await?;
                }
                adopting = Some(Adopting::new(*birth, number));
            }
            Ok(LogItem::Blob(bytes)) => {
                app.tl().await?.put_blob(bytes).await?;
            }
            Ok(LogItem::Entry(entry)) => {
                if let Some(current) = &mut adopting {
                    current.entries.push(entry);
                    if current.entries.len() >= AT_ONCE {
                        let part = current.part();
                        part.flush(app, &mut done).await?;
                    }
                }
            }
        }
        bar.set_position(items.bytes());
    }
    if let Some(finished) = adopting.take() {
        finished.flush(app, &mut done).await?;
    }
    Ok(done)
}

/// A session on its way in.
#[derive(Debug)]
struct Adopting {
    birth: Birth,
    line: u64,
    entries: Vec<StoredEntry>,
    begun: bool,
}

impl Adopting {
    fn new(birth: Birth, line: u64) -> Self {
        Self {
            birth,
            line,
            entries: Vec::new(),
            begun: false,
        }
    }

    /// What is gathered so far, to be adopted now.
    fn part(&mut self) -> Self {
        let part = Self {
            birth: self.birth.clone(),
            line: self.line,
            entries: std::mem::take(&mut self.entries),
            begun: self.begun,
        };
        self.begun = true;
        part
    }

    async fn flush(self, app: &App, done: &mut Done) -> Result<()> {
        let tl = app.tl().await?;
        let session = tl.owner().session(&self.birth.id);
        let was_there = self.begun || tl.store().record(&session).await.is_ok();
        let total = self.entries.len() as u64;
        match tl.store().adopt(tl.owner(), self.birth, self.entries).await {
            Ok(new) => {
                done.created += u64::from(!was_there);
                done.appended += new;
                done.known += total - new;
            }
            Err(error) => {
                let error = anyhow::Error::from(error);
                done.bad.push((self.line, format!("{error:#}")));
            }
        }
        Ok(())
    }
}

async fn document(app: &App, reader: &mut Input) -> Result<Done> {
    let document = read_document(reader)
        .map_err(|error| Refusal::invalid(format!("{:#}", anyhow::Error::from(error))))?;
    let mut done = Done::default();
    let adopting = Adopting {
        entries: document.entries,
        ..Adopting::new(document.birth, 1)
    };
    adopting.flush(app, &mut done).await?;
    Ok(done)
}

fn tell(app: &App, done: &Done) -> Result<ExitCode> {
    let ok = done.bad.is_empty();
    if app.ui.json {
        let bad: Vec<_> = done
            .bad
            .iter()
            .map(|(line, error)| json!({"line": line, "error": error}))
            .collect();
        app.ui.json(&json!({
            "ok": ok,
            "created": done.created,
            "appended": done.appended,
            "known": done.known,
            "bad": bad,
        }))?;
    } else {
        for (line, error) in done.bad.iter().take(TOLD) {
            app.ui.warn(format_args!("line {line}: {error}"));
        }
        if done.bad.len() > TOLD {
            let more = counted((done.bad.len() - TOLD) as u64, "more line");
            app.ui
                .warn(format_args!("and {more}; --json tells them all"));
        }
        app.ui.status(format_args!(
            "{} in, {} there already, {} made",
            counted(done.appended, "message"),
            counted(done.known, "message"),
            counted(done.created, "session"),
        ));
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(5)
    })
}
