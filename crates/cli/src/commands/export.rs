//! `tl export`: writes sessions to files in Throughline's and other programs' formats.

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

/// Entries read per page.
const PAGE_SIZE: usize = 500;

/// The output format.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A readable transcript, with the summary at the end
    #[value(alias = "md")]
    Markdown,
    /// One JSON document, complete except for the bytes of attachments
    Json,
    /// JSON Lines, complete: `tl import` recreates the same sessions elsewhere
    Jsonl,
    /// One self-contained page to read, search and print
    Html,
    /// Claude Code's session format
    ClaudeCode,
    /// Codex's session format
    Codex,
    /// pi's session format
    Pi,
    /// AIarmy's four documents, in a folder
    Aiarmy,
    /// The chat loop's transcript
    ChatLoop,
    /// The chat bot's document
    Bot,
    /// The agent CLI's document and index, in a folder
    AgentCli,
    /// dagent's five documents, in a folder
    Dagent,
}

impl Format {
    /// Returns the document layout of a reference system, if this format is one.
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
/// JSON and JSON Lines are complete: imported elsewhere, they produce the same session,
/// digest for digest. Anything that looks like a key or a password is redacted, marked and
/// reported; a redacted entry cannot be imported, so --reveal leaves it in. Files are
/// written completely or not at all.
#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// The session
    #[arg(required_unless_present = "all")]
    session: Option<SessionSpec>,
    /// The format [default: from the file's extension, or markdown]
    #[arg(long, short, value_enum)]
    format: Option<Format>,
    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Every session, including archived ones (JSON Lines only)
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Do not redact what looks like a key or a password
    #[arg(long)]
    reveal: bool,
    /// Write the attachments into this folder instead, one file each
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
                // Only JSON Lines can hold several sessions.
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
            UserError::invalid(format!("{} already exists", path.display()))
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

/// Writes the attachments of sessions as files named by entry number and attachment name.
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
            // A name from elsewhere must not decide the path here.
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
    // `--all` includes memories.
    let filter = throughline::SessionFilter {
        include_internal: true,
        ..throughline::SessionFilter::default()
    };
    for info in tl.list_all(&filter).await? {
        sessions.push(tl.session(&info.id).await?);
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

/// Writes a session in another program's format, or as an HTML page.
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

/// Writes the documents of a reference system into a folder; a single one may go to stdout.
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
            let what = "this format writes several files";
            return Err(UserError::invalid(what)
                .with_hint("name a folder with -o")
                .into());
        }
        (Some(folder), files) => {
            let folder = app.resolve_path(folder);
            for (name, _) in files.iter().filter(|_| !args.force) {
                let path = folder.join(name);
                if path.exists() {
                    let what = format!("{} already exists", path.display());
                    return Err(UserError::invalid(what)
                        .with_hint("--force replaces it")
                        .into());
                }
            }
            for (name, text) in files {
                let path = folder.join(name);
                let above = path.parent().unwrap_or(&folder);
                create_private_folder(above)
                    .with_context(|| format!("{} cannot be created", above.display()))?;
                write_atomically(&path, text.as_bytes())
                    .with_context(|| format!("{} cannot be written", path.display()))?;
                app.ui.status(format_args!("Wrote {}", path.display()));
            }
        }
    }
    secrets.report_redactions(app);
    Ok(())
}

/// Redacts secrets from exported entries and counts the redactions.
#[derive(Debug, Default)]
pub(crate) struct SecretRedactor {
    /// Whether secrets are left in.
    pub(crate) reveal: bool,
    /// Number of entries with redactions.
    redacted_count: u64,
}

impl SecretRedactor {
    /// Creates a redactor; with `reveal`, it leaves entries unchanged.
    pub(crate) fn new(reveal: bool) -> Self {
        Self {
            reveal,
            redacted_count: 0,
        }
    }

    /// Returns whether secrets are left in.
    pub(crate) fn reveal(&self) -> bool {
        self.reveal
    }

    /// Warns about redacted entries.
    pub(crate) fn report_redactions(&self, app: &App) {
        if self.redacted_count > 0 {
            let found = match self.redacted_count {
                1 => "1 entry contained".to_owned(),
                found => format!("{found} entries contained"),
            };
            app.ui.warn(format_args!(
                "{found} what looks like a secret, which was redacted; --reveal leaves it in"
            ));
        }
    }

    /// Returns the entry, redacted if necessary.
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
        let header = session.header().await?;
        let info = session.record().await?.info;
        let writer = match (&mut writer, out.take()) {
            (None, Some(out)) => {
                writer.insert(LogWriter::new(out, &header, info.head, &info.digest)?)
            }
            (Some(writer), _) => {
                writer.start_session(&header, info.head, &info.digest)?;
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
        (None, None) => Err(UserError::invalid("no session to export").into()),
    }
}

/// Returns the digests of an entry's attachments; none if the entry cannot be decoded.
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
    let info = session.record().await?.info;
    let mut writer = DocumentWriter::new(out, &session.header().await?, info.head, &info.digest)?;
    let mut left_out = 0;
    for_each_entry(session, |entry| {
        left_out += attachment_digests(&entry).len() as u64;
        Ok(writer.write_entry(&secrets.redact(entry))?)
    })
    .await?;
    if left_out > 0 {
        let left_out = pluralize(left_out, "attachment");
        app.ui.warn(format_args!(
            "{left_out} listed without content; --format jsonl includes it"
        ));
    }
    Ok(writer.finish()?)
}

/// Calls a function with every stored entry of a session, in order.
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

/// Writes the transcript of a session.
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

/// Returns the path of the transcript this session was resumed from, if recorded.
async fn previous_transcript(session: &Session) -> Result<Option<String>> {
    let first = session.entries(Seq(1), 1).await?;
    Ok(first.into_iter().next().and_then(|entry| match entry.body {
        Body::Restored(restored) => restored.transcript,
        _ => None,
    }))
}
