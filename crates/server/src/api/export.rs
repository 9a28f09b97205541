//! Exports a session as a file, streamed while it is written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use jiff::tz::TimeZone;
use serde::Deserialize;
use throughline::{Body as EntryBody, ReadRange, Record, Seq, Session, StoredEntry};
use throughline_formats::{DocumentWriter, LogWriter, MarkdownWriter, TranscriptHeader};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use crate::extract::{CallerSession, Query};
use crate::{App, Problem};

/// Entries read at a time.
const PAGE_SIZE: usize = 500;

/// Export format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// A readable transcript.
    #[default]
    Markdown,
    /// One JSON document.
    Json,
    /// JSON Lines.
    Jsonl,
}

/// Export options.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    /// The format.
    #[serde(default)]
    #[param(inline)]
    format: Format,
    /// Whether to include text that looks like a secret.
    #[serde(default)]
    reveal: bool,
}

/// Export a session as a file
///
/// Text that looks like a key or a password is redacted and marked; `reveal` includes it. JSON and
/// JSON Lines are complete except for attachments. A redacted export cannot be imported again.
#[utoipa::path(get, path = "/api/sessions/{id}/export", tag = "sessions",
    params(ExportQuery, CallerSession),
    responses((status = 200, body = String,
        content_type = "text/markdown")))]
pub(crate) async fn export(
    State(app): State<App>,
    opened: CallerSession,
    Query(query): Query<ExportQuery>,
) -> Result<Response, Problem> {
    let record = opened.session.record().await?;
    let (kind, end) = match query.format {
        Format::Markdown => ("text/markdown; charset=utf-8", "md"),
        Format::Json => ("application/json", "json"),
        Format::Jsonl => ("application/x-ndjson", "jsonl"),
    };
    let name = format!("attachment; filename=\"{}.{end}\"", opened.session.id());
    let (send, receive) = mpsc::channel::<io::Result<Bytes>>(2);
    let export = Export {
        session: opened.session,
        record,
        reveal: query.reveal,
        zone: app.config.time_zone.clone(),
        out: SharedBuffer::default(),
        send,
    };
    tokio::spawn(export.run(query.format));
    let chunks = stream::unfold(receive, async |mut receive| {
        receive.recv().await.map(|chunk| (chunk, receive))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// A buffer shared between the export writer and the task that sends it page by page.
#[derive(Clone, Debug, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A running export of one session.
struct Export {
    session: Session,
    record: Record,
    reveal: bool,
    zone: TimeZone,
    out: SharedBuffer,
    send: mpsc::Sender<io::Result<Bytes>>,
}

impl Export {
    async fn run(self, format: Format) {
        let written = match format {
            Format::Markdown => self.write_markdown().await,
            Format::Json => self.write_json().await,
            Format::Jsonl => self.write_jsonl().await,
        };
        if let Err(error) = written {
            tracing::warn!(%error, "an export failed");
            // An error in the stream shows the reader that the export is incomplete.
            let _ = self.send.send(Err(error)).await;
        }
    }

    /// Sends what was written; fails once the reader is gone.
    async fn send_buffered(&self) -> io::Result<()> {
        let chunk = self.out.take();
        if chunk.is_empty() {
            return Ok(());
        }
        let sent = self.send.send(Ok(chunk.into())).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    async fn read_page(&self, from: Seq) -> io::Result<Vec<StoredEntry>> {
        let to = self.record.info.head;
        if from > to {
            return Ok(Vec::new());
        }
        let read = self
            .session
            .read_stored(ReadRange::between(from, to, PAGE_SIZE));
        read.await.map_err(io::Error::other)
    }

    fn redact_unless_revealed(&self, stored: StoredEntry) -> StoredEntry {
        if self.reveal {
            return stored;
        }
        stored.to_redacted().unwrap_or(stored)
    }

    /// Writes every entry up to the head, in order.
    async fn write_entries(
        &self,
        mut write: impl FnMut(&StoredEntry) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut next = Seq(1);
        loop {
            let page = self.read_page(next).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            next = last.seq.next();
            for stored in page {
                write(&self.redact_unless_revealed(stored))?;
            }
            self.send_buffered().await?;
        }
    }

    async fn read_header(&self) -> io::Result<throughline::SessionHeader> {
        self.session.header().await.map_err(io::Error::other)
    }

    async fn write_jsonl(&self) -> io::Result<()> {
        let (session_header, info) = (self.read_header().await?, &self.record.info);
        let mut writer =
            LogWriter::new(self.out.clone(), &session_header, info.head, &info.digest)?;
        self.write_entries(|entry| writer.write_entry(entry))
            .await?;
        writer.finish()?;
        self.send_buffered().await
    }

    async fn write_json(&self) -> io::Result<()> {
        let (session_header, info) = (self.read_header().await?, &self.record.info);
        let mut writer =
            DocumentWriter::new(self.out.clone(), &session_header, info.head, &info.digest)?;
        self.write_entries(|entry| writer.write_entry(entry))
            .await?;
        writer.finish()?;
        self.send_buffered().await
    }

    async fn write_markdown(&self) -> io::Result<()> {
        let session_header = self.read_header().await?;
        let mut head = TranscriptHeader::new(&session_header, &self.record.info);
        let first = self.read_page(Seq(1)).await?;
        let first = first.first().and_then(|stored| stored.decode().ok());
        if let Some(EntryBody::Restored(restored)) = first.map(|entry| entry.body) {
            head.previous_session = restored.transcript;
        }
        let mut writer = MarkdownWriter::new(self.out.clone(), &head, self.zone.clone())?;
        self.write_entries(|stored| {
            let entry = stored.decode().map_err(io::Error::other)?;
            writer.write_entry(&entry)
        })
        .await?;
        let summary = self
            .session
            .last_summary()
            .await
            .map_err(io::Error::other)?;
        let summary = summary.map(|known| {
            if self.reveal {
                known.summary
            } else {
                known.summary.into_redacted()
            }
        });
        writer.finish(summary.as_ref())?;
        self.send_buffered().await
    }
}
