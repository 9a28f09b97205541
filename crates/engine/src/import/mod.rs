//! Bringing sessions in from elsewhere, any number of times.
//!
//! Every entry gets an id that is a function of what it is, so that the second time it is
//! recognised. Entries are gathered and appended together, many sessions at once, which
//! lets the store commit them together; while it does, the next ones are gathered.
//!
//! Invariant: nothing that is there is changed. What comes again and says otherwise, or
//! goes on from where somebody here has gone on too, becomes a fork.

mod arriving;
mod gathering;
mod ledger;
mod meeting;
mod place;
mod report;
mod resolving;
mod sharing;
mod waiting;

pub use arriving::Arriving;
pub use ledger::{Ledger, LedgerRow};
pub use report::ImportReport;

use std::collections::HashMap;
use std::fmt;

use futures_util::future::{BoxFuture, join_all};
use futures_util::poll;
use throughline_model::{Happened, Incoming, IncomingEntry, IncomingSession, Passed};
use throughline_store::Encoded;

use crate::{Error, Throughline};
use gathering::Gathering;
use meeting::Meeting;
use waiting::Waiting;

/// Entries read from the store at a time.
const PAGE: usize = 500;
/// How many entries are gathered before they are appended.
const GATHERED: usize = 2_048;
/// And how many bytes of them, about.
const GATHERED_BYTES: usize = 4 * 1024 * 1024;
/// How many entries are taken before it is looked whether the store wants something.
const TAKEN: usize = 128;

/// What another system calls a session, and which system that is.
type Name = (Option<String>, String);

/// Takes in what comes, in order.
pub struct Importer {
    tl: Throughline,
    report: ImportReport,
    sessions: HashMap<Name, Gathering>,
    current: Option<Name>,
    blobs: Vec<Vec<u8>>,
    entries: usize,
    bytes: usize,
    /// What was gathered before and is being appended.
    appending: Option<BoxFuture<'static, Result<Vec<Appended>, Error>>>,
}

/// What came of appending what was gathered for a session.
struct Appended {
    name: Name,
    meeting: Meeting,
    /// What is no reason to make a session, and goes on waiting.
    left: Vec<Waiting>,
    report: ImportReport,
}

impl fmt::Debug for Importer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importer")
            .field("report", &self.report)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl Importer {
    /// Imports into `tl`.
    pub fn new(tl: Throughline) -> Self {
        Self {
            tl,
            report: ImportReport::default(),
            sessions: HashMap::new(),
            current: None,
            blobs: Vec::new(),
            entries: 0,
            bytes: 0,
            appending: None,
        }
    }

    /// Takes one thing in. It is durable when [`finish`](Self::finish) returns, and most of
    /// it before.
    pub async fn take(&mut self, arriving: impl Into<Arriving>) -> Result<(), Error> {
        let Arriving { incoming, encoded } = arriving.into();
        match incoming {
            Incoming::Session(session) => self.session(*session).await,
            Incoming::Entry(entry) => self.entry(entry, encoded).await,
            Incoming::Blob(bytes) => {
                self.bytes += bytes.len();
                self.blobs.push(bytes);
                Ok(())
            }
            Incoming::Passed(Passed {
                place,
                what,
                damaged,
            }) => {
                if damaged {
                    self.report.damaged.push((place, what));
                } else {
                    *self.report.passed.entry(what).or_default() += 1;
                }
                Ok(())
            }
        }
    }

    async fn session(&mut self, session: IncomingSession) -> Result<(), Error> {
        let name = (session.from.clone(), session.id.clone());
        if !self.sessions.contains_key(&name) {
            // What this one came from must be there to be compared with.
            if session.origin.is_some() {
                self.append().await?;
                self.settle().await?;
            }
            self.sessions.insert(name.clone(), Gathering::new(session));
        }
        self.current = Some(name);
        Ok(())
    }

    async fn entry(
        &mut self,
        entry: Box<IncomingEntry>,
        encoded: Option<Encoded>,
    ) -> Result<(), Error> {
        let current = self.current.as_ref();
        let Some(gathering) = current.and_then(|name| self.sessions.get_mut(name)) else {
            // A reader tells the session first; what belongs to none cannot be kept.
            *self
                .report
                .passed
                .entry("entry of no session".to_owned())
                .or_default() += 1;
            return Ok(());
        };
        self.bytes += size(&entry);
        self.entries += 1;
        gathering.take(entry, encoded);
        if self.entries >= GATHERED || self.bytes >= GATHERED_BYTES {
            self.append().await?;
        } else if self.entries.is_multiple_of(TAKEN)
            && let Some(appending) = &mut self.appending
            && let std::task::Poll::Ready(done) = poll!(appending)
        {
            self.appending = None;
            self.appended(done?);
        }
        Ok(())
    }

    /// Appends what is gathered and tells what was done.
    pub async fn finish(mut self) -> Result<ImportReport, Error> {
        self.append().await?;
        self.settle().await?;
        self.report.failed.sort_by_key(|(line, _)| *line);
        self.report.damaged.sort_by_key(|(line, _)| *line);
        Ok(self.report)
    }

    /// How many messages have been appended or recognised so far.
    pub fn done(&self) -> u64 {
        self.report.appended + self.report.known
    }

    /// Begins to append what is gathered, after what was gathered before it.
    async fn append(&mut self) -> Result<(), Error> {
        self.settle().await?;
        let blobs = std::mem::take(&mut self.blobs);
        let mut gathered = Vec::new();
        for (name, gathering) in &mut self.sessions {
            if gathering.waiting.is_empty() {
                gathering.rest();
            } else if let Some(meeting) = gathering.meeting.take() {
                let waiting = std::mem::take(&mut gathering.waiting);
                gathered.push((name.clone(), meeting, waiting));
            }
        }
        self.entries = 0;
        self.bytes = 0;
        let tl = self.tl.clone();
        let mut appending: BoxFuture<'static, _> = Box::pin(append(tl, blobs, gathered));
        match poll!(&mut appending) {
            std::task::Poll::Ready(done) => self.appended(done?),
            std::task::Poll::Pending => self.appending = Some(appending),
        }
        Ok(())
    }

    /// Waits until what was gathered before is appended.
    async fn settle(&mut self) -> Result<(), Error> {
        if let Some(appending) = self.appending.take() {
            let done = appending.await?;
            self.appended(done);
        }
        Ok(())
    }

    fn appended(&mut self, done: Vec<Appended>) {
        for appended in done {
            self.report.add(appended.report);
            if let Some(gathering) = self.sessions.get_mut(&appended.name) {
                gathering.meeting = Some(appended.meeting);
                gathering.waiting.splice(..0, appended.left);
            }
        }
    }
}

/// Appends what was gathered for sessions, attachments first.
async fn append(
    tl: Throughline,
    blobs: Vec<Vec<u8>>,
    gathered: Vec<(Name, Meeting, Vec<Waiting>)>,
) -> Result<Vec<Appended>, Error> {
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
        .map(async |(name, mut meeting, waiting)| {
            let (report, left) = if meeting.is_wanted(&tl, &waiting).await {
                (meeting.append(&tl, waiting).await, Vec::new())
            } else {
                (ImportReport::default(), waiting)
            };
            Appended {
                name,
                meeting,
                left,
                report,
            }
        });
    Ok(join_all(appended).await)
}

fn size(entry: &IncomingEntry) -> usize {
    let said = match &entry.what {
        Happened::Body(body) => body.bytes(),
        _ => 256,
    };
    said + 256
}
