//! `tl export`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use throughline::{Body, Read, Seq, Session, SessionSpec, Summary};
use throughline_formats::{DocumentWriter, LogWriter, MarkdownWriter, TranscriptHead};

use crate::app::App;
use crate::report::Refusal;

/// Entries read at a time.
const PAGE: usize = 500;

/// How a session is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A transcript to read, with the summary at its end
    Markdown,
    /// One JSON document, complete
    Json,
    /// JSON Lines, complete: `tl import` makes the same sessions of it elsewhere
    Jsonl,
}

/// Write sessions to a file or stdout
///
/// JSON and JSON Lines are complete: imported elsewhere they give the same session,
/// digest for digest. Files appear whole or not at all.
#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// Which session
    #[arg(required_unless_present = "all")]
    session: Option<SessionSpec>,
    /// How
    #[arg(long, short, value_enum, default_value = "markdown")]
    format: Format,
    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
    /// Every session, archived ones too (JSON Lines only)
    #[arg(long, conflicts_with = "session")]
    all: bool,
}

pub(crate) async fn run(app: &App, args: ExportArgs) -> Result<()> {
    let sessions = match &args.session {
        Some(spec) => vec![app.session(spec).await?],
        None => all(app, args.format).await?,
    };
    let Some(path) = &args.output else {
        let out = std::io::BufWriter::new(std::io::stdout());
        write(app, &sessions, args.format, out).await?.flush()?;
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
    let out = write(app, &sessions, args.format, out).await?;
    let partial = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)?;
    partial.as_file().sync_all()?;
    partial.persist(&file).with_context(cannot)?;
    std::fs::File::open(folder)?.sync_all()?;
    app.ui.status(format_args!("Wrote {}", path.display()));
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
    for card in tl.list_all(&throughline::Filter::default()).await? {
        sessions.push(tl.session(&card.id).await?);
    }
    Ok(sessions)
}

async fn write<W: Write>(app: &App, sessions: &[Session], format: Format, out: W) -> Result<W> {
    match (format, sessions) {
        (Format::Jsonl, sessions) => log(app, sessions, out).await,
        (Format::Json, [session, ..]) => document(session, out).await,
        (Format::Markdown, [session, ..]) => transcript(app, session, out).await,
        (_, []) => Ok(out),
    }
}

async fn log<W: Write>(app: &App, sessions: &[Session], out: W) -> Result<W> {
    let bar = app.ui.progress("Exporting", "sessions");
    bar.set_length(sessions.len() as u64);
    let Some((first, rest)) = sessions.split_first() else {
        return Ok(out);
    };
    let record = first.record().await?;
    let card = &record.card;
    let mut writer = LogWriter::new(out, &first.birth().await?, card.head, &card.digest)?;
    entries(first, |entry| Ok(writer.entry(entry)?)).await?;
    for session in rest {
        bar.inc(1);
        let card = session.record().await?.card;
        writer.session(&session.birth().await?, card.head, &card.digest)?;
        entries(session, |entry| Ok(writer.entry(entry)?)).await?;
    }
    bar.finish_and_clear();
    Ok(writer.finish()?)
}

async fn document<W: Write>(session: &Session, out: W) -> Result<W> {
    let card = session.record().await?.card;
    let mut writer = DocumentWriter::new(out, &session.birth().await?, card.head, &card.digest)?;
    entries(session, |entry| Ok(writer.entry(entry)?)).await?;
    Ok(writer.finish()?)
}

/// Every entry of a session, as stored, in order.
async fn entries(
    session: &Session,
    mut each: impl FnMut(&throughline::StoredEntry) -> Result<()>,
) -> Result<()> {
    let mut next = Seq(1);
    loop {
        let page = session.read_stored(Read::from(next, PAGE)).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        next = last.seq.next();
        page.iter().try_for_each(&mut each)?;
    }
}

async fn transcript<W: Write>(app: &App, session: &Session, out: W) -> Result<W> {
    let record = session.record().await?;
    let mut head = TranscriptHead::of(&session.birth().await?, &record.card);
    head.previous_session = previous(session).await?;
    let mut writer = MarkdownWriter::new(out, &head, app.zone.clone())?;
    let mut next = Seq(1);
    loop {
        let page = session.entries(next, PAGE).await?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for entry in &page {
            writer.entry(entry)?;
        }
    }
    let summary: Option<Summary> = session.checkpoint().await?.map(|(_, c)| c.summary);
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
