//! Feeds sessions to the writers of other systems' formats, with secrets redacted.

use std::collections::BTreeMap;

use anyhow::Result;
use throughline::{
    Block, Body, Digest, Entry, Json, ReadRange, Seq, Session, StoreError, StoredEntry,
};
use throughline_formats::{Blobs, ExportMetadata, SessionExport, SessionWriter};

use crate::app::App;
use crate::commands::export::SecretRedactor;

/// Entries read per page.
const PAGE_SIZE: usize = 200;
/// Number of messages in a working set.
const WORKING_SET_MESSAGES: usize = 20;
/// The context window of the systems that use working sets, in tokens.
const WORKING_SET_WINDOW: u64 = 100_000;

/// Returns what a writer needs to know before the first entry.
pub(crate) async fn export_head(
    app: &App,
    session: &Session,
    secrets: &SecretRedactor,
) -> Result<ExportMetadata> {
    let record = session.record().await?;
    let checkpoint = session.checkpoint().await?;
    let folder = record.info.workspace.clone();
    let folder = folder.unwrap_or_else(|| app.paths.working_folder.to_string_lossy().into_owned());
    let mut info = record.info;
    if !secrets.reveal {
        for text in std::iter::once(&mut info.preview).chain(&mut info.description) {
            *text = throughline::redact(text).into_owned();
        }
    }
    Ok(ExportMetadata {
        header: session.header().await?,
        info,
        state: record.state,
        summary: checkpoint.map(|(entry, checkpoint)| {
            let summary = if secrets.reveal {
                checkpoint.summary
            } else {
                checkpoint.summary.into_redacted()
            };
            (checkpoint.covers, summary, entry.at)
        }),
        folder,
    })
}

/// Calls a function with every page of redacted entries and their attachments.
async fn for_each_entry(
    app: &App,
    session: &Session,
    secrets: &mut SecretRedactor,
    mut each: impl FnMut(Entry, &Blobs) -> Result<()>,
) -> Result<()> {
    let tl = app.tl().await?;
    let mut next = Seq(1);
    loop {
        let page = session
            .read_stored(ReadRange::starting_at(next, PAGE_SIZE))
            .await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        next = last.seq.next();
        for stored in page {
            let entry = redact_entry(session, stored, secrets)?;
            let mut blobs = Blobs::new();
            for blob in attachment_digests(&entry) {
                if let std::collections::hash_map::Entry::Vacant(slot) = blobs.entry(blob) {
                    slot.insert(tl.blob(&blob).await?);
                }
            }
            each(entry, &blobs)?;
        }
    }
}

/// Returns an entry with secrets redacted.
pub(crate) fn redact_entry(
    session: &Session,
    stored: StoredEntry,
    secrets: &mut SecretRedactor,
) -> Result<Entry> {
    let seq = stored.seq;
    let entry = secrets.redact(stored).decode();
    Ok(entry.map_err(|source| StoreError::Damaged {
        id: session.id().clone(),
        seq,
        source,
    })?)
}

/// Returns the digests of an entry's attachments.
pub(crate) fn attachment_digests(entry: &Entry) -> Vec<Digest> {
    let message = entry.message().into_iter();
    let files = message.flat_map(|message| message.content.attachments());
    files.map(|file| file.blob).collect()
}

/// Writes a session with a format's writer.
pub(crate) async fn write_session(
    app: &App,
    session: &Session,
    secrets: &mut SecretRedactor,
    writer: &mut dyn SessionWriter,
) -> Result<()> {
    for_each_entry(app, session, secrets, |entry, blobs| {
        Ok(writer.write_entry(&entry, blobs)?)
    })
    .await?;
    Ok(writer.finish()?)
}

/// Loads a whole session, for formats that are written in one piece.
pub(crate) async fn load_full_session(
    app: &App,
    session: &Session,
    secrets: &mut SecretRedactor,
) -> Result<SessionExport> {
    let head = export_head(app, session, secrets).await?;
    let mut entries = Vec::new();
    let mut documents: BTreeMap<String, Json> = BTreeMap::new();
    let current_documents: Vec<Seq> = head.state.context.values().copied().collect();
    for_each_entry(app, session, secrets, |entry, _| {
        if let Body::ContextSet {
            document,
            content: Some(content),
        } = &entry.body
            && current_documents.contains(&entry.seq)
        {
            documents.insert(document.clone(), content.clone());
        }
        entries.push(entry);
        Ok(())
    })
    .await?;
    let mut working = session
        .working_set(
            WORKING_SET_MESSAGES,
            WORKING_SET_WINDOW,
            10 * WORKING_SET_MESSAGES,
        )
        .await?;
    let mut checkpoint = session.checkpoint_view().await?;
    if !secrets.reveal {
        let mut value = serde_json::to_value(&working)?;
        throughline::redact_json(&mut value);
        working = serde_json::from_value(value)?;
        let mut value = serde_json::to_value(&checkpoint)?;
        throughline::redact_json(&mut value);
        checkpoint = serde_json::from_value(value)?;
    }
    Ok(SessionExport {
        metadata: head,
        entries,
        working,
        checkpoint,
        documents,
    })
}

/// Returns the role and text of a message for a prompt.
pub(crate) fn prompt_line(entry: &Entry) -> Option<(&'static str, String)> {
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
