//! Imports Throughline's own formats: JSON message lines, exported logs and JSON documents.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use serde_json::json;
use throughline::format::pluralize;
use throughline::{
    EntryIdentity, Importer, IncomingEntry, IncomingItem, IncomingSession, SessionHeader,
    StoredEntry,
};
use throughline_formats::{LogItem, LogItems, MessageLines, is_log, read_document};

use super::ImportArgs;
use crate::app::App;
use crate::commands::append::is_future;
use crate::error_report::UserError;

/// Entries of a log stored per batch.
const BATCH_SIZE: usize = 1_000;
/// Maximum number of invalid lines reported individually.
const MAX_REPORTED_LINES: usize = 20;

/// The format of a file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    /// One JSON message per line, of any sessions; or JSON Lines from `tl export`
    Jsonl,
    /// One session from `tl export --format json`
    Json,
}

/// Counts and errors of an import.
#[derive(Debug, Default)]
struct FileImportReport {
    created: u64,
    appended: u64,
    known: u64,
    bad_lines: Vec<(u64, String)>,
}

pub(super) async fn run(app: &App, file: &Path, args: &ImportArgs) -> Result<ExitCode> {
    if args.dry_run {
        return Err(UserError::invalid("--dry-run only works for sessions of other agents").into());
    }
    let bar = app.ui.progress("Importing", "bytes");
    let (mut reader, size) = open(app, file)?;
    bar.set_length(size.unwrap_or(0));
    let done = match (args.format, detect_kind(&mut reader)?) {
        (Some(Format::Json), _) | (None, FileKind::Document) => {
            import_document(app, &mut reader).await
        }
        (_, FileKind::Log) => import_log(app, reader, &bar).await,
        (_, FileKind::Message | FileKind::Document) => import_messages(app, reader, &bar).await,
    };
    bar.finish_and_clear();
    let code = print_report(app, &done?)?;
    super::update_index(app, args).await?;
    Ok(code)
}

type Input = BufReader<Box<dyn Read>>;

fn open(app: &App, path: &Path) -> Result<(Input, Option<u64>)> {
    // Large enough to hold the first line of a log.
    let buffered = |input: Box<dyn Read>| BufReader::with_capacity(1 << 20, input);
    if path.as_os_str() == "-" {
        return Ok((buffered(Box::new(std::io::stdin())), None));
    }
    let file = File::open(app.resolve_path(path)).map_err(|error| UserError {
        what: format!("{} cannot be read: {error}", path.display()),
        hint: None,
        kind: throughline::ErrorKind::NotFound,
    })?;
    let size = file.metadata().ok().map(|metadata| metadata.len());
    Ok((buffered(Box::new(file)), size))
}

/// The kind of a file, detected from its first line.
enum FileKind {
    Log,
    Document,
    Message,
}

/// Detects the kind from the first line without consuming it.
fn detect_kind(reader: &mut Input) -> Result<FileKind> {
    let seen = reader.fill_buf().context("the input cannot be read")?;
    let line = seen.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(match std::str::from_utf8(line) {
        Ok(line) if is_log(line) => FileKind::Log,
        Ok(line) if line.starts_with("{\"throughline\":") => FileKind::Document,
        _ => FileKind::Message,
    })
}

async fn import_messages(app: &App, reader: Input, bar: &ProgressBar) -> Result<FileImportReport> {
    let mut importer = Importer::new(app.tl().await?.clone());
    let mut done = FileImportReport::default();
    let now = app.tl().await?.now();
    let mut lines = MessageLines::new(reader);
    while let Some(next) = lines.next() {
        let (number, line) = next.context("the input cannot be read")?;
        match line {
            Err(error) => done.bad_lines.push((number, error.to_string())),
            Ok(line) => match line.session {
                None => done
                    .bad_lines
                    .push((number, "no session specified".to_owned())),
                Some(session) => {
                    let at = line.at.filter(|at| !is_future(*at, now));
                    if at != line.at {
                        let what = "its time is in the future; using the current time";
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
                        identity: line
                            .external_id
                            .map_or(EntryIdentity::Content, EntryIdentity::External),
                        author: line.author,
                        ..IncomingEntry::message(number, None, at, line.message)
                    };
                    importer
                        .add(IncomingItem::Session(Box::new(session)))
                        .await?;
                    importer.add(IncomingItem::Entry(Box::new(entry))).await?;
                }
            },
        }
        bar.set_position(lines.bytes_read());
    }
    let report = importer.finish().await?;
    done.created = report.created;
    done.appended = report.appended;
    done.known = report.already_stored;
    for (line, error) in report.failed {
        done.bad_lines.push((line, error.to_string()));
    }
    done.bad_lines.sort_by_key(|(line, _)| *line);
    Ok(done)
}

/// Imports sessions written by `tl export`.
async fn import_log(app: &App, reader: Input, bar: &ProgressBar) -> Result<FileImportReport> {
    let mut done = FileImportReport::default();
    let mut adopting: Option<SessionBatch> = None;
    let mut items = LogItems::new(reader);
    while let Some(next) = items.next() {
        let (number, item) = next.context("the input cannot be read")?;
        match item {
            Err(error) => done.bad_lines.push((number, error.to_string())),
            Ok(LogItem::Session { header: birth, .. }) => {
                if let Some(finished) = adopting.take() {
                    finished.flush(app, &mut done).await?;
                }
                adopting = Some(SessionBatch::new(*birth, number));
            }
            Ok(LogItem::Blob(bytes)) => {
                app.tl().await?.put_blob(bytes).await?;
            }
            Ok(LogItem::Entry(entry)) => {
                if let Some(current) = &mut adopting {
                    current.entries.push(entry);
                    if current.entries.len() >= BATCH_SIZE {
                        let part = current.take_batch();
                        part.flush(app, &mut done).await?;
                    }
                }
            }
        }
        bar.set_position(items.bytes_read());
    }
    if let Some(finished) = adopting.take() {
        finished.flush(app, &mut done).await?;
    }
    Ok(done)
}

/// Entries of a session to be stored together.
#[derive(Debug)]
struct SessionBatch {
    header: SessionHeader,
    line: u64,
    entries: Vec<StoredEntry>,
    has_flushed: bool,
}

impl SessionBatch {
    fn new(header: SessionHeader, line: u64) -> Self {
        Self {
            header,
            line,
            entries: Vec::new(),
            has_flushed: false,
        }
    }

    /// Takes the entries collected so far.
    fn take_batch(&mut self) -> Self {
        let part = Self {
            header: self.header.clone(),
            line: self.line,
            entries: std::mem::take(&mut self.entries),
            has_flushed: self.has_flushed,
        };
        self.has_flushed = true;
        part
    }

    async fn flush(self, app: &App, done: &mut FileImportReport) -> Result<()> {
        let tl = app.tl().await?;
        let session = tl.owner().session(&self.header.id);
        let was_there = self.has_flushed || tl.store().record(&session).await.is_ok();
        let total = self.entries.len() as u64;
        match tl
            .store()
            .import_log(tl.owner(), self.header, self.entries)
            .await
        {
            Ok(new) => {
                done.created += u64::from(!was_there);
                done.appended += new;
                done.known += total - new;
            }
            Err(error) => {
                let error = anyhow::Error::from(error);
                done.bad_lines.push((self.line, format!("{error:#}")));
            }
        }
        Ok(())
    }
}

async fn import_document(app: &App, reader: &mut Input) -> Result<FileImportReport> {
    let document = read_document(reader)
        .map_err(|error| UserError::invalid(format!("{:#}", anyhow::Error::from(error))))?;
    let mut done = FileImportReport::default();
    let adopting = SessionBatch {
        entries: document.entries,
        ..SessionBatch::new(document.header, 1)
    };
    adopting.flush(app, &mut done).await?;
    Ok(done)
}

fn print_report(app: &App, done: &FileImportReport) -> Result<ExitCode> {
    let ok = done.bad_lines.is_empty();
    if app.ui.json {
        let bad: Vec<_> = done
            .bad_lines
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
        for (line, error) in done.bad_lines.iter().take(MAX_REPORTED_LINES) {
            app.ui.warn(format_args!("line {line}: {error}"));
        }
        if done.bad_lines.len() > MAX_REPORTED_LINES {
            let more = pluralize(
                (done.bad_lines.len() - MAX_REPORTED_LINES) as u64,
                "more line",
            );
            app.ui
                .warn(format_args!("and {more}; --json lists them all"));
        }
        app.ui.status(format_args!(
            "{} imported, {} already known, {} created",
            pluralize(done.appended, "message"),
            pluralize(done.known, "message"),
            pluralize(done.created, "session"),
        ));
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(5)
    })
}
