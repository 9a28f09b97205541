//! Imports sessions from other systems, idempotently.
//!
//! Every entry gets an id derived from what it is, so that a repeated import recognizes
//! it. Entries of many sessions and sources are buffered and appended together, which
//! lets the store commit them in batches. The work is pipelined: while one batch is
//! being written, the next is prepared and the one after that is buffered.
//!
//! Invariant: nothing stored is ever changed. If a repeated entry differs from the
//! stored one, or a session has also been continued locally, the difference becomes a
//! fork.

mod append_batch;
mod import_buffer;
mod import_record;
mod import_report;
mod in_flight;
mod ledger;
mod pending_entry;
mod resolve_references;
mod resolve_target;
mod session_import;
mod shared_prefix;
mod source_tracker;

pub use import_record::ImportRecord;
pub use import_report::ImportReport;
pub use ledger::{Ledger, LedgerRow};

use std::collections::HashMap;
use std::fmt;
use std::task::Poll;

use futures_util::future::{BoxFuture, join_all};
use futures_util::poll;
use throughline_model::{ImportEvent, IncomingEntry, IncomingItem, IncomingSession, SkippedRecord};
use throughline_store::EncodedPayload;

use crate::{Error, Throughline};
use import_buffer::ImportBuffer;
use pending_entry::PendingEntry;
use session_import::SessionImport;
use source_tracker::{SourceNumber, SourceTracker};

/// The number of entries read from the store at a time.
const PAGE: usize = 500;
/// The number of buffered entries that starts an append.
const FLUSH_ENTRIES: usize = 2_048;
/// The approximate number of buffered bytes that starts an append.
const FLUSH_BYTES: usize = 4 * 1024 * 1024;
/// How many entries are added before a pending append is polled.
const POLL_EVERY_ENTRIES: usize = 128;

/// Identifies a session of a source by the other system and its id there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ImportSessionKey {
    source: SourceNumber,
    from: Option<String>,
    id: String,
}

/// Imports records in the order in which they are added.
pub struct Importer {
    tl: Throughline,
    sources: SourceTracker,
    sessions: HashMap<ImportSessionKey, ImportBuffer>,
    /// The source of each session that is not durable yet, by session id.
    open_sources: HashMap<String, SourceNumber>,
    current_session: Option<ImportSessionKey>,
    blobs: Vec<Vec<u8>>,
    buffered_entries: usize,
    buffered_bytes: usize,
    /// The append of the previous batch, which is being prepared or written.
    pending_append: Option<BoxFuture<'static, Result<SubmittedBatch, Error>>>,
}

/// A batch that has been submitted to the store.
struct SubmittedBatch {
    /// The source that was current at the time: all earlier ones have been submitted.
    source: SourceNumber,
    sessions: Vec<SessionAppend>,
}

/// The result of appending a session's buffered entries.
struct SessionAppend {
    key: ImportSessionKey,
    import: SessionImport,
    /// Entries that do not justify creating a session and stay buffered.
    remaining: Vec<PendingEntry>,
    report: ImportReport,
}

impl fmt::Debug for Importer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importer")
            .field("sources", &self.sources)
            .field("entries", &self.buffered_entries)
            .finish_non_exhaustive()
    }
}

impl Importer {
    /// Creates an importer into `tl`.
    pub fn new(tl: Throughline) -> Self {
        Self {
            tl,
            sources: SourceTracker::default(),
            sessions: HashMap::new(),
            open_sources: HashMap::new(),
            current_session: None,
            blobs: Vec::new(),
            buffered_entries: 0,
            buffered_bytes: 0,
            pending_append: None,
        }
    }

    /// Adds one record. It is durable when [`finish`](Self::finish) returns, and
    /// usually before.
    pub async fn add(&mut self, record: impl Into<ImportRecord>) -> Result<(), Error> {
        let ImportRecord { incoming, encoded } = record.into();
        match incoming {
            IncomingItem::Session(session) => self.start_session(*session).await,
            IncomingItem::Entry(entry) => self.add_entry(entry, encoded).await,
            IncomingItem::Blob(bytes) => {
                self.buffered_bytes += bytes.len();
                self.blobs.push(bytes);
                Ok(())
            }
            IncomingItem::Skipped(SkippedRecord {
                position,
                description,
                damaged,
            }) => {
                let report = self.sources.current_report();
                if damaged {
                    report.damaged.push((position, description));
                } else {
                    *report.skipped.entry(description).or_default() += 1;
                }
                Ok(())
            }
        }
    }

    /// Ends the current source; further records belong to the next one. Each source has
    /// its own report, but entries of several sources are buffered together.
    pub fn next_source(&mut self) {
        self.sources.advance();
        self.current_session = None;
    }

    /// Returns the reports of sources that have ended and are durable, in order, each
    /// once.
    pub fn take_finished(&mut self) -> Vec<ImportReport> {
        self.sources.take_finished()
    }

    /// Drives the pending append while the caller is idle. Returns when it has been
    /// submitted; may be dropped before.
    pub async fn drive(&mut self) -> Result<(), Error> {
        let Some(append) = &mut self.pending_append else {
            return std::future::pending().await;
        };
        let submitted = append.await;
        self.pending_append = None;
        self.handle_submitted(submitted?);
        Ok(())
    }

    /// Appends all buffered entries and waits until they are durable.
    pub async fn flush(&mut self) -> Result<(), Error> {
        self.start_append().await?;
        self.wait_for_submission().await?;
        let sessions = self.sessions.iter_mut();
        let flushes = sessions.map(async |(key, buffer)| {
            let mut report = ImportReport::default();
            if let Some(import) = &mut buffer.import {
                import.flush(&mut report).await;
            }
            (key.source, report)
        });
        for (source, report) in join_all(flushes).await {
            self.sources.add_report(source, report);
        }
        self.sources.mark_durable();
        self.drop_completed_sessions();
        Ok(())
    }

    /// Appends all buffered entries and returns a report for the sources that were not
    /// returned by [`take_finished`](Self::take_finished).
    pub async fn finish(mut self) -> Result<ImportReport, Error> {
        self.flush().await?;
        Ok(self.sources.into_remaining())
    }

    async fn start_session(&mut self, session: IncomingSession) -> Result<(), Error> {
        let source = self.sources.current_source();
        let key = ImportSessionKey {
            source,
            from: session.source_system.clone(),
            id: session.id.clone(),
        };
        if !self.sessions.contains_key(&key) {
            let in_other_source = self
                .open_sources
                .get(&key.id)
                .is_some_and(|other| *other != source);
            // The session this one was forked from, or the same session from another
            // source, must be stored before this one is compared with it.
            if session.origin.is_some() || in_other_source {
                self.flush().await?;
            }
            self.open_sources.insert(key.id.clone(), source);
            self.sessions
                .insert(key.clone(), ImportBuffer::new(session));
        }
        self.current_session = Some(key);
        Ok(())
    }

    async fn add_entry(
        &mut self,
        entry: Box<IncomingEntry>,
        encoded: Option<EncodedPayload>,
    ) -> Result<(), Error> {
        let current = self.current_session.as_ref();
        let Some(buffer) = current.and_then(|key| self.sessions.get_mut(key)) else {
            // Readers emit a session before its entries; an entry without one cannot be
            // stored.
            let what = "entry of no session".to_owned();
            *self
                .sources
                .current_report()
                .skipped
                .entry(what)
                .or_default() += 1;
            return Ok(());
        };
        self.buffered_bytes += estimate_bytes(&entry);
        self.buffered_entries += 1;
        buffer.push(entry, encoded);
        if self.buffered_entries >= FLUSH_ENTRIES || self.buffered_bytes >= FLUSH_BYTES {
            self.start_append().await?;
        } else if self.buffered_entries.is_multiple_of(POLL_EVERY_ENTRIES)
            && let Some(append) = &mut self.pending_append
            && let Poll::Ready(submitted) = poll!(append)
        {
            self.pending_append = None;
            self.handle_submitted(submitted?);
        }
        Ok(())
    }

    /// Starts to append the buffered entries, after the previous batch.
    async fn start_append(&mut self) -> Result<(), Error> {
        self.wait_for_submission().await?;
        let source = self.sources.current_source();
        let blobs = std::mem::take(&mut self.blobs);
        let mut batch = Vec::new();
        for (key, buffer) in &mut self.sessions {
            if let Some(import) = buffer.take_import() {
                let pending = std::mem::take(&mut buffer.pending);
                batch.push((key.clone(), import, pending));
            }
        }
        self.buffered_entries = 0;
        self.buffered_bytes = 0;
        let tl = self.tl.clone();
        let append = async move {
            let sessions = append_sessions(tl, blobs, batch).await?;
            Ok(SubmittedBatch { source, sessions })
        };
        let mut append: BoxFuture<'static, _> = Box::pin(append);
        match poll!(&mut append) {
            Poll::Ready(submitted) => self.handle_submitted(submitted?),
            Poll::Pending => self.pending_append = Some(append),
        }
        Ok(())
    }

    /// Waits until the previous batch has been submitted to the store.
    async fn wait_for_submission(&mut self) -> Result<(), Error> {
        if self.pending_append.is_some() {
            self.drive().await?;
        }
        Ok(())
    }

    fn handle_submitted(&mut self, submitted: SubmittedBatch) {
        for appended in submitted.sessions {
            self.sources
                .add_report(appended.key.source, appended.report);
            if let Some(buffer) = self.sessions.get_mut(&appended.key) {
                buffer.import = Some(appended.import);
                buffer.pending.splice(..0, appended.remaining);
            }
        }
        self.sources.mark_submitted(submitted.source);
        self.drop_completed_sessions();
    }

    /// Drops the sessions of sources that are completely durable.
    fn drop_completed_sessions(&mut self) {
        let open = self.sources.first_incomplete();
        self.sessions.retain(|key, _| key.source >= open);
        self.open_sources.retain(|_, source| *source >= open);
    }
}

/// Prepares the entries of all sessions and submits them to the store, attachments
/// first.
async fn append_sessions(
    tl: Throughline,
    blobs: Vec<Vec<u8>>,
    batch: Vec<(ImportSessionKey, SessionImport, Vec<PendingEntry>)>,
) -> Result<Vec<SessionAppend>, Error> {
    for put in join_all(blobs.into_iter().map(|bytes| tl.put_blob(bytes))).await {
        // A file that is too large is reported with the entry that refers to it.
        if let Err(error) = put
            && error.kind() != throughline_store::ErrorKind::Invalid
        {
            return Err(error);
        }
    }
    let appended = batch
        .into_iter()
        .map(async |(key, mut import, mut pending)| {
            let mut report = ImportReport::default();
            if pending.is_empty() {
                import.flush(&mut report).await;
            } else if import.should_import(&tl, &pending).await {
                let pending = std::mem::take(&mut pending);
                import.append(&tl, pending, &mut report).await;
            }
            SessionAppend {
                key,
                import,
                remaining: pending,
                report,
            }
        });
    Ok(join_all(appended).await)
}

fn estimate_bytes(entry: &IncomingEntry) -> usize {
    let body_bytes = match &entry.event {
        ImportEvent::Body(body) => body.estimate_bytes(),
        _ => 256,
    };
    body_bytes + 256
}
