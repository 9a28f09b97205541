//! `tl import`

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde_json::json;
use throughline::{Birth, Importer, Incoming, StoredEntry};
use throughline_formats::{LogItem, LogItems, MessageLines, is_log, read_document};

use crate::app::App;
use crate::report::Refusal;
use crate::ui::counted;

/// Entries of a log adopted in one go.
const AT_ONCE: usize = 1_000;
/// Bad lines told one by one.
const TOLD: usize = 20;

/// What is in a file.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One JSON message a line, of any sessions; or what `tl export` wrote as jsonl
    Jsonl,
    /// One session as `tl export --format json` wrote it
    Json,
}

/// Bring sessions in
///
/// Takes one JSON object a line: {"session": "id or name", "role": "user", "content":
/// "text or blocks", "at": "RFC 3339", "id": "outside id", "author": "…", "name":
/// "title", "project": "…"}. Makes sessions as needed and keeps order and outside ids.
/// Run it again and nothing is doubled. Bad lines are told by number; all others come in.
#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    /// The file; `-` for stdin
    file: PathBuf,
    /// What is in it
    #[arg(long, short, value_enum, default_value = "jsonl")]
    format: Format,
}

/// What an import did.
#[derive(Debug, Default)]
struct Done {
    created: u64,
    appended: u64,
    known: u64,
    bad: Vec<(u64, String)>,
}

pub(crate) async fn run(app: &App, args: ImportArgs) -> Result<ExitCode> {
    let bar = app.ui.progress("Importing", "bytes");
    let (mut reader, size) = open(app, &args.file)?;
    bar.set_length(size.unwrap_or(0));
    let done = match args.format {
        Format::Json => document(app, &mut reader).await,
        Format::Jsonl => {
            let is_log = first_line_is_log(&mut reader)?;
            if is_log {
                log(app, reader, &bar).await
            } else {
                messages(app, reader, &bar).await
            }
        }
    };
    bar.finish_and_clear();
    tell(app, &done?)
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

/// Looks at the first line without taking it.
fn first_line_is_log(reader: &mut Input) -> Result<bool> {
    let seen = reader.fill_buf().context("the input cannot be read")?;
    let line = seen.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(std::str::from_utf8(line).is_ok_and(is_log))
}

async fn messages(app: &App, reader: Input, bar: &ProgressBar) -> Result<Done> {
    let mut importer = Importer::new(app.tl().await?.clone());
    let mut done = Done::default();
    let mut lines = MessageLines::new(reader);
    while let Some(next) = lines.next() {
        let (number, line) = next.context("the input cannot be read")?;
        match line {
            Err(error) => done.bad.push((number, error.to_string())),
            Ok(line) => match line.session {
                None => done.bad.push((number, "it names no session".to_owned())),
                Some(session) => {
                    let incoming = Incoming {
                        session,
                        name: line.name,
                        project: line.project,
                        at: line.at,
                        external_id: line.external_id,
                        author: line.author,
                        message: line.message,
                        line: number,
                    };
                    importer.message(incoming).await?;
                }
            },
        }
        bar.set_position(lines.bytes());
    }
    let report = importer.finish().await;
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
