//! `tl export`

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use throughline::format::pluralize;
use throughline::{Body, Digest, Name, ReadRange, Seq, Session, SessionSpec, StoredEntry, Summary};
use throughline_formats::{
    ClaudeCodeWriter, CodexWriter, DocumentWriter, HtmlWriter, Layout, LogWriter, MarkdownWriter,
    PiWriter, SessionWriter, TranscriptHeader,
};

use crate::app::App;
use crate::error_report::UserError;
use crate::paths::{create_private_folder, write_atomically};
use crate::session_export;

/// Entries read at a time.
const PAGE_SIZE: usize = 500;

/// How a session is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A transcript to read, with the summary at its end
    #[value(alias = "md")]
    Markdown,
    /// One JSON document, complete but for the bytes of attachments
    Json,
    /// JSON Lines, complete: `tl import` makes the same sessions of it elsewhere
    Jsonl,
    /// One page to read, search and print, with everything in it
    Html,
    /// As Claude Code keeps it
    ClaudeCode,
    /// As Codex keeps it
    Codex,
    /// As pi keeps it
    Pi,
    /// AIarmy's four documents, into a folder
    Aiarmy,
    /// A transcript as the chat loop keeps it
    ChatLoop,
    /// The chat bot's document
    Bot,
    /// The agent CLI's document and index, into a folder
    AgentCli,
    /// dagent's five documents, into a folder
    Dagent,
}

impl Format {
    /// The reference system whose documents these are.
    fn layout(self) -> Option<Layout> {
        match self {
            Self::Aiarmy => Some(Layout::AiArmy),
            Self::Bot => Some(Layout::Bot),
            Self::AgentCli => Some(Layout::AgentCli),
            Self::Dagent => Some(Layout::Dagent),
            Self::Markdown
            | Self::Json
            | Self::Jsonl
            | Self::Html
            | Self::ClaudeCode
            | Self::Codex
            | Self::Pi
            | Self::ChatLoop => None,
        }
    }
}

/// Write sessions to a file or stdout
///
/// JSON and JSON Lines are complete: imported elsewhere they give the same session,
/// digest for digest. What looks like a key or a password is redacted, with a mark, and
/// told; an entry without it cannot be imported, so --reveal leaves it in. Files appear
/// whole or not at all.
#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// Which session
    #[arg(required_unless_present = "all")]
    session: Option<SessionSpec>,
    /// How [default: as the file's name says, or markdown]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
    /// Every session, archived ones too (JSON Lines only)
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Leave in what looks like a key or a password, which is redacted otherwise
    #[arg(long)]
    reveal: bool,
    /// Write the attachments into this folder instead, a file each
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["all", "output"])]
    attachments: Option<PathBuf>,
}

impl ExportArgs {
    fn format(&self, json: bool) -> Format {
        let named = self.output.as_ref().and_then(|path| path.extension());
        self.format
            .unwrap_or(match named.and_then(|name| name.to_str()) {
                Some("json") => Format::Json,
                Some("jsonl" | "ndjson") => Format::Jsonl,
                Some("html" | "htm") => Format::Html,
                // Several sessions have one form only.
                None if self.all => Format::Jsonl,
                _ if json => Format::Json,
                _ => Format::Markdown,
            })
    }
}

pub(crate) async fn run(app: &App, args: ExportArgs) -> Result<()> {
    let format = args.format(app.ui.json);
    let sessions = match &args.session {
        Some(spec) => vec![app.session(spec).await?],
        None => list_all_sessions(app, format).await?,
    };
    if let Some(folder) = &args.attachments {
        return write_attachments(app, &sessions, folder).await;
    }
    if let (Some(layout), [session]) = (format.layout(), sessions.as_slice()) {
        return write_layout_files(app, session, layout, &args).await;
    }
    let Some(path) = &args.output else {
        let out = std::io::BufWriter::new(std::io::stdout());
        write_sessions(app, &sessions, format, args.reveal, out)
            .await?
            .flush()?;
        return Ok(());
    };
    let file = app.resolve_path(path);
    if file.exists() && !args.force {
        return Err(
            UserError::invalid(format!("{} is there already", path.display()))
                .with_hint("--force replaces it")
                .into(),
        );
    }
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let cannot = || format!("{} cannot be written", path.display());
    let partial = tempfile::NamedTempFile::new_in(folder).with_context(cannot)?;
    let out = std::io::BufWriter::new(partial);
    let out = write_sessions(app, &sessions, format, args.reveal, out).await?;
    let partial = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    partial.as_file().sync_all()?;
    partial.persist(&file).with_context(cannot)?;
    std::fs::File::open(folder)?.sync_all()?;
    app.ui.status(format_args!("Wrote {}", path.display()));
    Ok(())
}

/// Writes the attachments of sessions as files, named after their entry and their name.
async fn write_attachments(app: &App, sessions: &[Session], folder: &Path) -> Result<()> {
    let tl = app.tl().await?;
    let folder = app.resolve_path(folder);
    create_private_folder(&folder)?;
    for session in sessions {
        let mut found = Vec::new();
        for_each_entry(session, |stored| {
            if let Ok(entry) = stored.decode()
                && let Some(message) = entry.message()
            {
                found.extend(
                    message
                        .content
                        .attachments()
                        .map(|a| (entry.seq, a.clone())),
                );
            }
            Ok(())
        })
        .await?;
        for (seq, attachment) in found {
            let bytes = tl.blob(&attachment.blob).await?;
            // What it was called elsewhere must not decide where it goes here.
            let name = attachment.name.as_deref().unwrap_or("attachment");
            let name = name.replace(['/', '\\'], "-").parse::<Name>();
            let name = name.map_or_else(|_| attachment.blob.short(), |name| name.to_string());
            let file = folder.join(format!("{seq}-{name}"));
            write_atomically(&file, &bytes)?;
            app.ui.data(file.display())?;
        }
    }
    Ok(())
}

async fn list_all_sessions(app: &App, format: Format) -> Result<Vec<Session>> {
    if !matches!(format, Format::Jsonl) {
        return Err(
            UserError::invalid("only JSON Lines can hold several sessions")
                .with_hint("use --format jsonl")
                .into(),
        );
    }
    let tl = app.tl().await?;
    let mut sessions = Vec::new();
    // All means all: what is remembered too.
    let filter = throughline::SessionFilter {
        include_internal: true,
        ..throughline::SessionFilter::default()
    };
    for card in tl.list_all(&filter).await? {
        sessions.push(tl.session(&card.id).await?);
    }
    Ok(sessions)
}

async fn write_sessions<W: Write>(
    app: &App,
    sessions: &[Session],
    format: Format,
    reveal: bool,
    out: W,
) -> Result<W> {
    let mut secrets = SecretRedactor::new(reveal);
    let out = match (format, sessions) {
        (Format::Jsonl, sessions) => write_log(app, sessions, &mut secrets, out).await,
        (Format::Json, [session, ..]) => write_document(app, session, &mut secrets, out).await,
        (Format::Markdown | Format::ChatLoop, [session, ..]) => {
            write_transcript(app, session, &mut secrets, out).await
        }
        (format, [session, ..]) => {
            write_foreign_format(app, session, format, &mut secrets, out).await
        }
        (_, []) => Ok(out),
    }?;
    secrets.report_redactions(app);
    Ok(out)
}

/// A session as another program keeps it, or as a page.
async fn write_foreign_format<W: Write>(
    app: &App,
    session: &Session,
    format: Format,
    secrets: &mut SecretRedactor,
    mut out: W,
) -> Result<W> {
    let head = session_export::export_head(app, session, secrets).await?;
    {
        let mut writer: Box<dyn SessionWriter + '_> = match format {
            Format::ClaudeCode => Box::new(ClaudeCodeWriter::new(&mut out, head)),
            Format::Codex => Box::new(CodexWriter::new(&mut out, head)),
            Format::Pi => Box::new(PiWriter::new(&mut out, head)),
            _ => Box::new(HtmlWriter::new(&mut out, head, app.zone.clone())),
        };
        session_export::write_session(app, session, secrets, &mut *writer).await?;
    }
    Ok(out)
}

/// The documents of a reference system, into a folder; one alone may go to stdout.
async fn write_layout_files(
    app: &App,
    session: &Session,
    layout: Layout,
    args: &ExportArgs,
) -> Result<()> {
    let mut secrets = SecretRedactor::new(args.reveal);
    let files = session_export::load_full_session(app, session, &mut secrets)
        .await?
        .files(layout);
    match (&args.output, files.as_slice()) {
        (None, [(_, only)]) => app.ui.data(only.trim_end())?,
        (None, _) => {
            let what = "it is several files";
            return Err(UserError::invalid(what)
                .with_hint("name a folder with -o")
                .into());
        }
        (Some(folder), files) => {
            let folder = app.resolve_path(folder);
            for (name, _) in files.iter().filter(|_| !args.force) {
                let path = folder.join(name);
                if path.exists() {
                    let what = format!("{} is there already", path.display());
                    return Err(UserError::invalid(what)
                        .with_hint("--force replaces it")
                        .into());
                }
            }
            for (name, text) in files {
                let path = folder.join(name);
                let above = path.parent().unwrap_or(&folder);
                create_private_folder(above)
                    .with_context(|| format!("{} cannot be made", above.display()))?;
                write_atomically(&path, text.as_bytes())
                    .with_context(|| format!("{} cannot be written", path.display()))?;
                app.ui.status(format_args!("Wrote {}", path.display()));
            }
        }
    }
    secrets.report_redactions(app);
    Ok(())
}

/// What looks like a secret on its way out.
#[derive(Debug, Default)]
pub(crate) struct SecretRedactor {
    /// Whether it is left in.
    pub(crate) reveal: bool,
    /// How many entries had something that was taken out.
    redacted_count: u64,
}

impl SecretRedactor {
    /// What looks like a secret is taken out, unless it is to be left in.
    pub(crate) fn new(reveal: bool) -> Self {
        Self {
            reveal,
            redacted_count: 0,
        }
    }

    /// Whether it is left in.
    pub(crate) fn reveal(&self) -> bool {
        self.reveal
    }

    /// Tells what was taken out.
    pub(crate) fn report_redactions(&self, app: &App) {
        if self.redacted_count > 0 {
            let found = match self.redacted_count {
                1 => "one entry had".to_owned(),
                found => format!("{found} entries had"),
            };
            app.ui.warn(format_args!(
                "{found} what looks like a secret, which was redacted; --reveal leaves it in"
            ));
        }
    }

    /// The entry as it may be seen.
    pub(crate) fn redact(&mut self, stored: StoredEntry) -> StoredEntry {
        match stored.to_redacted() {
            Some(safe) if !self.reveal => {
                self.redacted_count += 1;
                safe
            }
            _ => stored,
        }
    }
}

async fn write_log<W: Write>(
    app: &App,
    sessions: &[Session],
    secrets: &mut SecretRedactor,
    out: W,
) -> Result<W> {
    let tl = app.tl().await?;
    let bar = app.ui.progress("Exporting", "sessions");
    bar.set_length(sessions.len() as u64);
    let mut written = HashSet::new();
    let mut out = Some(out);
    let mut writer: Option<LogWriter<W>> = None;
    for session in sessions {
        let birth = session.header().await?;
        let card = session.record().await?.info;
        let writer = match (&mut writer, out.take()) {
            (None, Some(out)) => {
                writer.insert(LogWriter::new(out, &birth, card.head, &card.digest)?)
            }
            (Some(writer), _) => {
                writer.start_session(&birth, card.head, &card.digest)?;
                writer
            }
            (None, None) => continue,
        };
        let mut next = Seq(1);
        loop {
            let page = session
                .read_stored(ReadRange::starting_at(next, PAGE_SIZE))
                .await?;
            let Some(last) = page.last() else {
                break;
            };
            next = last.seq.next();
            for entry in page {
                for blob in attachment_digests(&entry)
                    .into_iter()
                    .filter(|blob| written.insert(*blob))
                {
                    writer.write_blob(&tl.blob(&blob).await?)?;
                }
                writer.write_entry(&secrets.redact(entry))?;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    match (writer, out) {
        (Some(writer), _) => Ok(writer.finish()?),
        (None, Some(out)) => Ok(out),
        (None, None) => Err(UserError::invalid("there is nothing to export").into()),
    }
}

/// The attachments an entry names. One that cannot be decoded is written as it is.
fn attachment_digests(stored: &StoredEntry) -> Vec<Digest> {
    let entry = stored.decode();
    entry.map_or_else(
        |_| Vec::new(),
        |entry| session_export::attachment_digests(&entry),
    )
}

async fn write_document<W: Write>(
    app: &App,
    session: &Session,
    secrets: &mut SecretRedactor,
    out: W,
) -> Result<W> {
    let card = session.record().await?.info;
    let mut writer = DocumentWriter::new(out, &session.header().await?, card.head, &card.digest)?;
    let mut left_out = 0;
    for_each_entry(session, |entry| {
        left_out += attachment_digests(&entry).len() as u64;
        Ok(writer.write_entry(&secrets.redact(entry))?)
    })
    .await?;
    if left_out > 0 {
        let left_out = pluralize(left_out, "attachment");
        app.ui.warn(format_args!(
            "{left_out} named but not in it; --format jsonl has the bytes"
        ));
    }
    Ok(writer.finish()?)
}

/// Every entry of a session, as stored, in order.
async fn for_each_entry(
    session: &Session,
    mut each: impl FnMut(StoredEntry) -> Result<()>,
) -> Result<()> {
    let mut next = Seq(1);
    loop {
        let page = session
            .read_stored(ReadRange::starting_at(next, PAGE_SIZE))
            .await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        next = last.seq.next();
        page.into_iter().try_for_each(&mut each)?;
    }
}

/// The transcript of a session.
pub(crate) async fn write_transcript<W: Write>(
    app: &App,
    session: &Session,
    secrets: &mut SecretRedactor,
    out: W,
) -> Result<W> {
    let record = session.record().await?;
    let mut head = TranscriptHeader::new(&session.header().await?, &record.info);
    head.previous_session = previous_transcript(session).await?;
    let mut writer = MarkdownWriter::new(out, &head, app.zone.clone())?;
    for_each_entry(session, |stored| {
        Ok(writer.write_entry(&session_export::redact_entry(session, stored, secrets)?)?)
    })
    .await?;
    let summary: Option<Summary> = session.last_summary().await?.map(|known| known.summary);
    let summary = summary.map(|summary| {
        if secrets.reveal {
            summary
        } else {
            summary.into_redacted()
        }
    });
    Ok(writer.finish(summary.as_ref())?)
}

/// Where the transcript of the session this one was resumed from is, if it was noted.
async fn previous_transcript(session: &Session) -> Result<Option<String>> {
    let first = session.entries(Seq(1), 1).await?;
    Ok(first.into_iter().next().and_then(|entry| match entry.body {
        Body::Restored(restored) => restored.transcript,
        _ => None,
    }))
}
