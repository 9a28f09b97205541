//! `tl export`

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use throughline::glance::counted;
use throughline::{Body, Digest, Name, Read, Seq, Session, SessionSpec, StoredEntry, Summary};
use throughline_formats::{
    ClaudeCodeWriter, CodexWriter, DocumentWriter, HtmlWriter, Layout, LogWriter, MarkdownWriter,
    PiWriter, SessionWriter, TranscriptHead,
};

use crate::app::App;
use crate::outgoing;
use crate::places::{make_private, write_whole};
use crate::report::Refusal;

/// Entries read at a time.
const PAGE: usize = 500;

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
        None => all(app, format).await?,
    };
    if let Some(folder) = &args.attachments {
        return files(app, &sessions, folder).await;
    }
    if let (Some(layout), [session]) = (format.layout(), sessions.as_slice()) {
        return documents(app, session, layout, &args).await;
    }
    let Some(path) = &args.output else {
        let out = std::io::BufWriter::new(std::io::stdout());
        write(app, &sessions, format, args.reveal, out)
            .await?
            .flush()?;
        return Ok(());
    };
    let file = app.path(path);
    if file.exists() && !args.force {
        return Err(
            Refusal::invalid(format!("{} is there already", path.display()))
                .hint("--force replaces it")
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
    let out = write(app, &sessions, format, args.reveal, out).await?;
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
async fn files(app: &App, sessions: &[Session], folder: &Path) -> Result<()> {
    let tl = app.tl().await?;
    let folder = app.path(folder);
    make_private(&folder)?;
    for session in sessions {
        let mut found = Vec::new();
        entries(session, |stored| {
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
            write_whole(&file, &bytes)?;
            app.ui.data(file.display())?;
        }
    }
    Ok(())
}

async fn all(app: &App, format: Format) -> Result<Vec<Session>> {
    if !matches!(format, Format::Jsonl) {
        return Err(
            Refusal::invalid("only JSON Lines can hold several sessions")
                .hint("use --format jsonl")
                .into(),
        );
    }
    let tl = app.tl().await?;
    let mut sessions = Vec::new();
    // All means all: what is remembered too.
    let filter = throughline::Filter {
        own: true,
        ..throughline::Filter::default()
    };
    for card in tl.list_all(&filter).await? {
        sessions.push(tl.session(&card.id).await?);
    }
    Ok(sessions)
}

async fn write<W: Write>(
    app: &App,
    sessions: &[Session],
    format: Format,
    reveal: bool,
    out: W,
) -> Result<W> {
    let mut secrets = Secrets::new(reveal);
    let out = match (format, sessions) {
        (Format::Jsonl, sessions) => log(app, sessions, &mut secrets, out).await,
        (Format::Json, [session, ..]) => document(app, session, &mut secrets, out).await,
        (Format::Markdown | Format::ChatLoop, [session, ..]) => {
            transcript(app, session, &mut secrets, out).await
        }
        (format, [session, ..]) => foreign(app, session, format, &mut secrets, out).await,
        (_, []) => Ok(out),
    }?;
    secrets.tell(app);
    Ok(out)
}

/// A session as another program keeps it, or as a page.
async fn foreign<W: Write>(
    app: &App,
    session: &Session,
    format: Format,
    secrets: &mut Secrets,
    mut out: W,
) -> Result<W> {
    let head = outgoing::head(app, session, secrets).await?;
    {
        let mut writer: Box<dyn SessionWriter + '_> = match format {
            Format::ClaudeCode => Box::new(ClaudeCodeWriter::new(&mut out, head)),
            Format::Codex => Box::new(CodexWriter::new(&mut out, head)),
            Format::Pi => Box::new(PiWriter::new(&mut out, head)),
            _ => Box::new(HtmlWriter::new(&mut out, head, app.zone.clone())),
        };
        outgoing::write(app, session, secrets, &mut *writer).await?;
    }
    Ok(out)
}

/// The documents of a reference system, into a folder; one alone may go to stdout.
async fn documents(app: &App, session: &Session, layout: Layout, args: &ExportArgs) -> Result<()> {
    let mut secrets = Secrets::new(args.reveal);
    let files = outgoing::whole(app, session, &mut secrets)
        .await?
        .files(layout);
    match (&args.output, files.as_slice()) {
        (None, [(_, only)]) => app.ui.data(only.trim_end())?,
        (None, _) => {
            let what = "it is several files";
            return Err(Refusal::invalid(what).hint("name a folder with -o").into());
        }
        (Some(folder), files) => {
            let folder = app.path(folder);
            for (name, _) in files.iter().filter(|_| !args.force) {
                let path = folder.join(name);
                if path.exists() {
                    let what = format!("{} is there already", path.display());
                    return Err(Refusal::invalid(what).hint("--force replaces it").into());
                }
            }
            for (name, text) in files {
                let path = folder.join(name);
                let above = path.parent().unwrap_or(&folder);
                make_private(above)
                    .with_context(|| format!("{} cannot be made", above.display()))?;
                write_whole(&path, text.as_bytes())
                    .with_context(|| format!("{} cannot be written", path.display()))?;
                app.ui.status(format_args!("Wrote {}", path.display()));
            }
        }
    }
    secrets.tell(app);
    Ok(())
}

/// What looks like a secret on its way out.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// Whether it is left in.
    pub(crate) reveal: bool,
    /// How many entries had something that was taken out.
    found: u64,
}

impl Secrets {
    /// What looks like a secret is taken out, unless it is to be left in.
    pub(crate) fn new(reveal: bool) -> Self {
        Self { reveal, found: 0 }
    }

    /// Whether it is left in.
    pub(crate) fn reveal(&self) -> bool {
        self.reveal
    }

    /// Tells what was taken out.
    pub(crate) fn tell(&self, app: &App) {
        if self.found > 0 {
            let found = match self.found {
                1 => "one entry had".to_owned(),
                found => format!("{found} entries had"),
            };
            app.ui.warn(format_args!(
                "{found} what looks like a secret, which was redacted; --reveal leaves it in"
            ));
        }
    }

    /// The entry as it may be seen.
    pub(crate) fn shown(&mut self, stored: StoredEntry) -> StoredEntry {
        match stored.redacted() {
            Some(safe) if !self.reveal => {
                self.found += 1;
                safe
            }
            _ => stored,
        }
    }
}

async fn log<W: Write>(
    app: &App,
    sessions: &[Session],
    secrets: &mut Secrets,
    out: W,
) -> Result<W> {
    let tl = app.tl().await?;
    let bar = app.ui.progress("Exporting", "sessions");
    bar.set_length(sessions.len() as u64);
    let mut written = HashSet::new();
    let mut out = Some(out);
    let mut writer: Option<LogWriter<W>> = None;
    for session in sessions {
        let birth = session.birth().await?;
        let card = session.record().await?.card;
        let writer = match (&mut writer, out.take()) {
            (None, Some(out)) => {
                writer.insert(LogWriter::new(out, &birth, card.head, &card.digest)?)
            }
            (Some(writer), _) => {
                writer.session(&birth, card.head, &card.digest)?;
                writer
            }
            (None, None) => continue,
        };
        let mut next = Seq(1);
        loop {
            let page = session.read_stored(Read::from(next, PAGE)).await?;
            let Some(last) = page.last() else {
                break;
            };
            next = last.seq.next();
            for entry in page {
                for blob in attachments(&entry)
                    .into_iter()
                    .filter(|blob| written.insert(*blob))
                {
                    writer.blob(&tl.blob(&blob).await?)?;
                }
                writer.entry(&secrets.shown(entry))?;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    match (writer, out) {
        (Some(writer), _) => Ok(writer.finish()?),
        (None, Some(out)) => Ok(out),
        (None, None) => Err(Refusal::invalid("there is nothing to export").into()),
    }
}

/// The attachments an entry names. One that cannot be decoded is written as it is.
fn attachments(stored: &StoredEntry) -> Vec<Digest> {
    let entry = stored.decode();
    entry.map_or_else(|_| Vec::new(), |entry| outgoing::attachments(&entry))
}

async fn document<W: Write>(
    app: &App,
    session: &Session,
    secrets: &mut Secrets,
    out: W,
) -> Result<W> {
    let card = session.record().await?.card;
    let mut writer = DocumentWriter::new(out, &session.birth().await?, card.head, &card.digest)?;
    let mut left_out = 0;
    entries(session, |entry| {
        left_out += attachments(&entry).len() as u64;
        Ok(writer.entry(&secrets.shown(entry))?)
    })
    .await?;
    if left_out > 0 {
        let left_out = counted(left_out, "attachment");
        app.ui.warn(format_args!(
            "{left_out} named but not in it; --format jsonl has the bytes"
        ));
    }
    Ok(writer.finish()?)
}

/// Every entry of a session, as stored, in order.
async fn entries(session: &Session, mut each: impl FnMut(StoredEntry) -> Result<()>) -> Result<()> {
    let mut next = Seq(1);
    loop {
        let page = session.read_stored(Read::from(next, PAGE)).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        next = last.seq.next();
        page.into_iter().try_for_each(&mut each)?;
    }
}

/// The transcript of a session.
pub(crate) async fn transcript<W: Write>(
    app: &App,
    session: &Session,
    secrets: &mut Secrets,
    out: W,
) -> Result<W> {
    let record = session.record().await?;
    let mut head = TranscriptHead::of(&session.birth().await?, &record.card);
    head.previous_session = previous(session).await?;
    let mut writer = MarkdownWriter::new(out, &head, app.zone.clone())?;
    entries(session, |stored| {
        Ok(writer.entry(&outgoing::shown(session, stored, secrets)?)?)
    })
    .await?;
    let summary: Option<Summary> = session.last_summary().await?.map(|known| known.summary);
    let summary = summary.map(|summary| {
        if secrets.reveal {
            summary
        } else {
            summary.redacted()
        }
    });
    Ok(writer.finish(summary.as_ref())?)
}

/// Where the transcript of the session this one was resumed from is, if it was noted.
async fn previous(session: &Session) -> Result<Option<String>> {
    let first = session.entries(Seq(1), 1).await?;
    Ok(first.into_iter().next().and_then(|entry| match entry.body {
        Body::Restored(restored) => restored.transcript,
        _ => None,
    }))
}
