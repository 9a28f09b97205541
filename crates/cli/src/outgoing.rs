//! Sessions on their way to other systems: what their writers need, with secrets taken out.

use std::collections::BTreeMap;

use anyhow::Result;
use throughline::{Block, Body, Digest, Entry, Json, Read, Seq, Session, StoreError, StoredEntry};
use throughline_formats::{Blobs, Head, SessionWriter, Whole};

use crate::app::App;
use crate::commands::export::Secrets;

/// Entries read at a time.
const PAGE: usize = 200;
/// Messages a working set has.
const RECENT: usize = 20;
/// The window of the systems that keep working sets.
const WINDOW: u64 = 100_000;

/// What a writer must know of a session before its first entry.
pub(crate) async fn head(app: &App, session: &Session, secrets: &Secrets) -> Result<Head> {
    let record = session.record().await?;
    let checkpoint = session.checkpoint().await?;
    let folder = record.card.workspace.clone();
    let folder = folder.unwrap_or_else(|| app.places.folder.to_string_lossy().into_owned());
    let mut card = record.card;
    if !secrets.reveal {
        for text in std::iter::once(&mut card.preview).chain(&mut card.description) {
            *text = throughline::redact(text).into_owned();
        }
    }
    Ok(Head {
        birth: session.birth().await?,
        card,
        standing: record.standing,
        summary: checkpoint.map(|(entry, checkpoint)| {
            let summary = if secrets.reveal {
                checkpoint.summary
            } else {
                checkpoint.summary.redacted()
            };
            (checkpoint.covers, summary, entry.at)
        }),
        folder,
    })
}

/// Every entry of a session, as it may be seen, page by page with the files it names.
async fn pages(
    app: &App,
    session: &Session,
    secrets: &mut Secrets,
    mut each: impl FnMut(Entry, &Blobs) -> Result<()>,
) -> Result<()> {
    let tl = app.tl().await?;
    let mut next = Seq(1);
    loop {
        let page = session.read_stored(Read::from(next, PAGE)).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        next = last.seq.next();
        for stored in page {
            let entry = shown(session, stored, secrets)?;
            let mut blobs = Blobs::new();
            for blob in attachments(&entry) {
                if let std::collections::hash_map::Entry::Vacant(place) = blobs.entry(blob) {
                    place.insert(tl.blob(&blob).await?);
                }
            }
            each(entry, &blobs)?;
        }
    }
}

/// An entry as it may be seen.
pub(crate) fn shown(
    session: &Session,
    stored: StoredEntry,
    secrets: &mut Secrets,
) -> Result<Entry> {
    let seq = stored.seq;
    let entry = secrets.shown(stored).decode();
    Ok(entry.map_err(|source| StoreError::Damaged {
        id: session.id().clone(),
        seq,
        source,
    })?)
}

/// The attachments an entry names.
pub(crate) fn attachments(entry: &Entry) -> Vec<Digest> {
    let message = entry.message().into_iter();
    let files = message.flat_map(|message| message.content.attachments());
    files.map(|file| file.blob).collect()
}

/// Gives a session to a writer.
pub(crate) async fn write(
    app: &App,
    session: &Session,
    secrets: &mut Secrets,
    writer: &mut dyn SessionWriter,
) -> Result<()> {
    pages(app, session, secrets, |entry, blobs| {
        Ok(writer.entry(&entry, blobs)?)
    })
    .await?;
    Ok(writer.finish()?)
}

/// A whole session, for documents that are written whole.
pub(crate) async fn whole(app: &App, session: &Session, secrets: &mut Secrets) -> Result<Whole> {
    let head = head(app, session, secrets).await?;
    let mut entries = Vec::new();
    let mut documents: BTreeMap<String, Json> = BTreeMap::new();
    let standing: Vec<Seq> = head.standing.context.values().copied().collect();
    pages(app, session, secrets, |entry, _| {
        if let Body::ContextSet {
            document,
            content: Some(content),
        } = &entry.body
            && standing.contains(&entry.seq)
        {
            documents.insert(document.clone(), content.clone());
        }
        entries.push(entry);
        Ok(())
    })
    .await?;
    let mut working = session.working_set(RECENT, WINDOW, 10 * RECENT).await?;
    let mut checkpoint = session.checkpoint_view().await?;
    if !secrets.reveal {
        let mut value = serde_json::to_value(&working)?;
        throughline::redact_json(&mut value);
        working = serde_json::from_value(value)?;
        let mut value = serde_json::to_value(&checkpoint)?;
        throughline::redact_json(&mut value);
        checkpoint = serde_json::from_value(value)?;
    }
    Ok(Whole {
        head,
        entries,
        working,
        checkpoint,
        documents,
    })
}

/// What was said, in the order of a conversation, for a prompt: who, and what.
pub(crate) fn said(entry: &Entry) -> Option<(&'static str, String)> {
    let message = entry.message()?;
    let mut parts = Vec::new();
    for block in &message.content.0 {
        match block {
            Block::Text(text) if !text.trim().is_empty() => parts.push(text.trim().to_owned()),
            Block::ToolCall(call) => parts.push(format!("[calls {}: {}]", call.name, call.input)),
            Block::ToolResult(result) => {
                let text = result.content.to_text();
                let short: String = text.chars().take(400).collect();
                let more = if short.len() < text.len() { " …" } else { "" };
                parts.push(format!("[result: {short}{more}]"));
            }
            Block::Attachment(file) => parts.push(format!("[{}]", file.media_type)),
            _ => {}
        }
    }
    if parts.is_empty() {
        return None;
    }
    Some((message.role.as_str(), parts.join("\n")))
}
