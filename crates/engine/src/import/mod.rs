//! Bringing sessions in from elsewhere, any number of times.
//!
//! Every entry gets an id that is a function of what it is, so that the second time it is
//! recognised. Entries are gathered and appended together, many sessions and sources at
//! once, which lets the store commit them together. While it does, the next ones are made
//! ready to be appended, and those after them are gathered.
//!
//! Invariant: nothing that is there is changed. What comes again and says otherwise, or
//! goes on from where somebody here has gone on too, becomes a fork.

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

/// Entries read from the store at a time.
const PAGE: usize = 500;
/// How many entries are gathered before they are appended.
const FLUSH_ENTRIES: usize = 2_048;
/// And how many bytes of them, about.
const FLUSH_BYTES: usize = 4 * 1024 * 1024;
/// How many entries are taken before it is looked whether the store wants something.
const POLL_EVERY_ENTRIES: usize = 128;

/// A session of a source: what another system calls it, and which system that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ImportSessionKey {
    source: SourceNumber,
    from: Option<String>,
    id: String,
}

/// Takes in what comes, in order.
pub struct Importer {
    tl: Throughline,
    sources: SourceTracker,
    sessions: HashMap<ImportSessionKey, ImportBuffer>,
    /// Whose source each session is of that is not durable yet.
    open_sources: HashMap<String, SourceNumber>,
    current_session: Option<ImportSessionKey>,
    blobs: Vec<Vec<u8>>,
    buffered_entries: usize,
    buffered_bytes: usize,
    /// What was gathered before and is made ready to be appended.
    pending_append: Option<BoxFuture<'static, Result<SubmittedBatch, Error>>>,
}

/// What the store has been given of what was gathered.
struct SubmittedBatch {
    /// The source that was being read then: the store has all of those before it.
    source: SourceNumber,
    sessions: Vec<SessionAppend>,
}

/// What came of appending what was gathered for a session.
struct SessionAppend {
    key: ImportSessionKey,
    import: SessionImport,
    /// What is no reason to make a session, and goes on waiting.
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
    /// Imports into `tl`.
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

    /// Takes one thing in. It is durable when [`finish`](Self::finish) returns, and most of
    /// it before.
    pub async fn add(&mut self, arriving: impl Into<ImportRecord>) -> Result<(), Error> {
        let ImportRecord { incoming, encoded } = arriving.into();
        match incoming {
            IncomingItem::Session(session) => self.start_session(*session).await,
            IncomingItem::Entry(entry) => self.add_entry(entry, encoded).await,
            IncomingItem::Blob(bytes) => {
                self.buffered_bytes += bytes.len();
                self.blobs.push(bytes);
                Ok(())
            }
            IncomingItem::Skipped(SkippedRecord {
                position: place,
                description: what,
                damaged,
            }) => {
                let report = self.sources.current_report();
                if damaged {
                    report.damaged.push((place, what));
                } else {
                    *report.skipped.entry(what).or_default() += 1;
                }
                Ok(())
            }
        }
    }

    /// The current source has been taken to its end: what comes next is another's. Sources
    /// are told of one by one, and gathered together.
    pub fn next_source(&mut self) {
        self.sources.advance();
        self.current_session = None;
    }

    /// What was done with sources that were taken to their end and are durable, in the order
    /// in which they came, each once.
    pub fn take_finished(&mut self) -> Vec<ImportReport> {
        self.sources.take_finished()
    }

    /// Goes on with what is under way, for as long as nothing else is to be done: it returns
    /// when that has come to something, and may be dropped before.
    pub async fn drive(&mut self) -> Result<(), Error> {
        let Some(appending) = &mut self.pending_append else {
            return std::future::pending().await;
        };
        let given = appending.await;
        self.pending_append = None;
        self.handle_submitted(given?);
        Ok(())
    }

    /// Appends what is gathered, and waits until all of it is durable.
    pub async fn flush(&mut self) -> Result<(), Error> {
        self.start_append().await?;
        self.wait_for_submission().await?;
        let sessions = self.sessions.iter_mut();
        let settling = sessions.map(async |(name, gathering)| {
            let mut report = ImportReport::default();
            if let Some(meeting) = &mut gathering.import {
                meeting.flush(&mut report).await;
            }
            (name.source, report)
        });
        for (source, report) in join_all(settling).await {
            self.sources.add_report(source, report);
        }
        self.sources.mark_durable();
        self.drop_completed_sessions();
        Ok(())
    }

    /// Appends what is gathered and tells what was done with all sources that were not
    /// told of.
    pub async fn finish(mut self) -> Result<ImportReport, Error> {
        self.flush().await?;
        Ok(self.sources.into_remaining())
    }

    async fn start_session(&mut self, session: IncomingSession) -> Result<(), Error> {
        let source = self.sources.current_source();
        let name = ImportSessionKey {
            source,
            from: session.source_system.clone(),
            id: session.id.clone(),
        };
        if !self.sessions.contains_key(&name) {
            let elsewhere = self
                .open_sources
                .get(&name.id)
                .is_some_and(|of| *of != source);
            // What this one came from, or what another source says of it, must be there to
            // be compared with.
            if session.origin.is_some() || elsewhere {
                self.flush().await?;
            }
            self.open_sources.insert(name.id.clone(), source);
            self.sessions
                .insert(name.clone(), ImportBuffer::new(session));
        }
        self.current_session = Some(name);
        Ok(())
    }

    async fn add_entry(
        &mut self,
        entry: Box<IncomingEntry>,
        encoded: Option<EncodedPayload>,
    ) -> Result<(), Error> {
        let current = self.current_session.as_ref();
        let Some(gathering) = current.and_then(|name| self.sessions.get_mut(name)) else {
            // A reader tells the session first; what belongs to none cannot be kept.
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
        gathering.push(entry, encoded);
        if self.buffered_entries >= FLUSH_ENTRIES || self.buffered_bytes >= FLUSH_BYTES {
            self.start_append().await?;
        } else if self.buffered_entries.is_multiple_of(POLL_EVERY_ENTRIES)
            && let Some(appending) = &mut self.pending_append
            && let Poll::Ready(given) = poll!(appending)
        {
            self.pending_append = None;
            self.handle_submitted(given?);
        }
        Ok(())
    }

    /// Begins to append what is gathered, after what was gathered before it.
    async fn start_append(&mut self) -> Result<(), Error> {
        self.wait_for_submission().await?;
        let source = self.sources.current_source();
        let blobs = std::mem::take(&mut self.blobs);
        let mut gathered = Vec::new();
        for (name, gathering) in &mut self.sessions {
            if let Some(meeting) = gathering.take_import() {
                let waiting = std::mem::take(&mut gathering.pending);
                gathered.push((name.clone(), meeting, waiting));
            }
        }
        self.buffered_entries = 0;
        self.buffered_bytes = 0;
        let tl = self.tl.clone();
        let appending = async move {
            let sessions = append_sessions(tl, blobs, gathered).await?;
            Ok(SubmittedBatch { source, sessions })
        };
        let mut appending: BoxFuture<'static, _> = Box::pin(appending);
        match poll!(&mut appending) {
            Poll::Ready(given) => self.handle_submitted(given?),
            Poll::Pending => self.pending_append = Some(appending),
        }
        Ok(())
    }

    /// Waits until the store has been given what was gathered before.
    async fn wait_for_submission(&mut self) -> Result<(), Error> {
        if self.pending_append.is_some() {
            self.drive().await?;
        }
        Ok(())
    }

    fn handle_submitted(&mut self, given: SubmittedBatch) {
        for appended in given.sessions {
            self.sources
                .add_report(appended.key.source, appended.report);
            if let Some(gathering) = self.sessions.get_mut(&appended.key) {
                gathering.import = Some(appended.import);
                gathering.pending.splice(..0, appended.remaining);
            }
        }
        self.sources.mark_submitted(given.source);
        self.drop_completed_sessions();
    }

    /// Forgets the sessions of sources that are durable to their end.
    fn drop_completed_sessions(&mut self) {
        let open = self.sources.first_incomplete();
        self.sessions.retain(|name, _| name.source >= open);
        self.open_sources.retain(|_, source| *source >= open);
    }
}

/// Makes ready what was gathered for sessions and gives it to the store, attachments first.
async fn append_sessions(
    tl: Throughline,
    blobs: Vec<Vec<u8>>,
    gathered: Vec<(ImportSessionKey, SessionImport, Vec<PendingEntry>)>,
) -> Result<Vec<SessionAppend>, Error> {
    for put in join_all(blobs.into_iter().map(|bytes| tl.put_blob(bytes))).await {
        // Too large a file is told with the entry that names it.
        if let Err(error) = put
            && error.kind() != throughline_store::ErrorKind::Invalid
        {
            return Err(error);
        }
    }
    let appended = gathered
        .into_iter()
        .map(async |(name, mut meeting, mut waiting)| {
            let mut report = ImportReport::default();
            if waiting.is_empty() {
                meeting.flush(&mut report).await;
            } else if meeting.should_import(&tl, &waiting).await {
                let waiting = std::mem::take(&mut waiting);
                meeting.append(&tl, waiting, &mut report).await;
            }
            SessionAppend {
                key: name,
                import: meeting,
                remaining: waiting,
                report,
            }
        });
    Ok(join_all(appended).await)
}

fn estimate_bytes(entry: &IncomingEntry) -> usize {
    let said = match &entry.event {
        ImportEvent::Body(body) => body.estimate_bytes(),
        _ => 256,
    };
    said + 256
}
