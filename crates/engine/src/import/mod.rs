//! Bringing sessions in from elsewhere, any number of times.
//!
//! Every entry gets an id that is a function of what it is, so that the second time it is
//! recognised. Entries are gathered and appended together, many sessions and sources at
//! once, which lets the store commit them together. While it does, the next ones are made
//! ready to be appended, and those after them are gathered.
//!
//! Invariant: nothing that is there is changed. What comes again and says otherwise, or
//! goes on from where somebody here has gone on too, becomes a fork.

mod arriving;
mod asked;
mod bundle;
mod gathering;
mod ledger;
mod meeting;
mod place;
mod report;
mod resolving;
mod sharing;
mod sources;
mod waiting;

pub use arriving::Arriving;
pub use ledger::{Ledger, LedgerRow};
pub use report::ImportReport;

use std::collections::HashMap;
use std::fmt;
use std::task::Poll;

use futures_util::future::{BoxFuture, join_all};
use futures_util::poll;
use throughline_model::{Happened, Incoming, IncomingEntry, IncomingSession, Passed};
use throughline_store::Encoded;

use crate::{Error, Throughline};
use gathering::Gathering;
use meeting::Meeting;
use sources::{SourceNumber, Sources};
use waiting::Waiting;

/// Entries read from the store at a time.
const PAGE: usize = 500;
/// How many entries are gathered before they are appended.
const GATHERED: usize = 2_048;
/// And how many bytes of them, about.
const GATHERED_BYTES: usize = 4 * 1024 * 1024;
/// How many entries are taken before it is looked whether the store wants something.
const TAKEN: usize = 128;

/// A session of a source: what another system calls it, and which system that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    source: SourceNumber,
    from: Option<String>,
    id: String,
}

/// Takes in what comes, in order.
pub struct Importer {
    tl: Throughline,
    sources: Sources,
    sessions: HashMap<Name, Gathering>,
    /// Whose source each session is of that is not durable yet.
    open: HashMap<String, SourceNumber>,
    current: Option<Name>,
    blobs: Vec<Vec<u8>>,
    entries: usize,
    bytes: usize,
    /// What was gathered before and is made ready to be appended.
    appending: Option<BoxFuture<'static, Result<Given, Error>>>,
}

/// What the store has been given of what was gathered.
struct Given {
    /// The source that was being read then: the store has all of those before it.
    source: SourceNumber,
    sessions: Vec<Appended>,
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
            .field("sources", &self.sources)
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl Importer {
    /// Imports into `tl`.
    pub fn new(tl: Throughline) -> Self {
        Self {
            tl,
            sources: Sources::default(),
            sessions: HashMap::new(),
            open: HashMap::new(),
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
                let report = self.sources.report();
                if damaged {
                    report.damaged.push((place, what));
                } else {
                    *report.passed.entry(what).or_default() += 1;
                }
                Ok(())
            }
        }
    }

    /// The current source has been taken to its end: what comes next is another's. Sources
    /// are told of one by one, and gathered together.
    pub fn next_source(&mut self) {
        self.sources.next();
        self.current = None;
    }

    /// What was done with sources that were taken to their end and are durable, in the order
    /// in which they came, each once.
    pub fn finished(&mut self) -> Vec<ImportReport> {
        self.sources.finished()
    }

    /// Goes on with what is under way, for as long as nothing else is to be done: it returns
    /// when that has come to something, and may be dropped before.
    pub async fn tend(&mut self) -> Result<(), Error> {
        let Some(appending) = &mut self.appending else {
            return std::future::pending().await;
        };
        let given = appending.await;
        self.appending = None;
        self.given(given?);
        Ok(())
    }

    /// Appends what is gathered, and waits until all of it is durable.
    pub async fn settle(&mut self) -> Result<(), Error> {
        self.append().await?;
        self.hand_over().await?;
        let sessions = self.sessions.iter_mut();
        let settling = sessions.map(async |(name, gathering)| {
            let mut report = ImportReport::default();
            if let Some(meeting) = &mut gathering.meeting {
                meeting.settle(&mut report).await;
            }
            (name.source, report)
        });
        for (source, report) in join_all(settling).await {
            self.sources.add(source, report);
        }
        self.sources.settled();
        self.forget();
        Ok(())
    }

    /// Appends what is gathered and tells what was done with all sources that were not
    /// told of.
    pub async fn finish(mut self) -> Result<ImportReport, Error> {
        self.settle().await?;
        Ok(self.sources.rest())
    }

    async fn session(&mut self, session: IncomingSession) -> Result<(), Error> {
        let source = self.sources.current();
        let name = Name {
            source,
            from: session.from.clone(),
            id: session.id.clone(),
        };
        if !self.sessions.contains_key(&name) {
            let elsewhere = self.open.get(&name.id).is_some_and(|of| *of != source);
            // What this one came from, or what another source says of it, must be there to
            // be compared with.
            if session.origin.is_some() || elsewhere {
                self.settle().await?;
            }
            self.open.insert(name.id.clone(), source);
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
            let what = "entry of no session".to_owned();
            *self.sources.report().passed.entry(what).or_default() += 1;
            return Ok(());
        };
        self.bytes += size(&entry);
        self.entries += 1;
        gathering.take(entry, encoded);
        if self.entries >= GATHERED || self.bytes >= GATHERED_BYTES {
            self.append().await?;
        } else if self.entries.is_multiple_of(TAKEN)
            && let Some(appending) = &mut self.appending
            && let Poll::Ready(given) = poll!(appending)
        {
            self.appending = None;
            self.given(given?);
        }
        Ok(())
    }

    /// Begins to append what is gathered, after what was gathered before it.
    async fn append(&mut self) -> Result<(), Error> {
        self.hand_over().await?;
        let source = self.sources.current();
        let blobs = std::mem::take(&mut self.blobs);
        let mut gathered = Vec::new();
        for (name, gathering) in &mut self.sessions {
            if let Some(meeting) = gathering.take_meeting() {
                let waiting = std::mem::take(&mut gathering.waiting);
                gathered.push((name.clone(), meeting, waiting));
            }
        }
        self.entries = 0;
        self.bytes = 0;
        let tl = self.tl.clone();
        let appending = async move {
            let sessions = append(tl, blobs, gathered).await?;
            Ok(Given { source, sessions })
        };
        let mut appending: BoxFuture<'static, _> = Box::pin(appending);
        match poll!(&mut appending) {
            Poll::Ready(given) => self.given(given?),
            Poll::Pending => self.appending = Some(appending),
        }
        Ok(())
    }

    /// Waits until the store has been given what was gathered before.
    async fn hand_over(&mut self) -> Result<(), Error> {
        if self.appending.is_some() {
            self.tend().await?;
        }
        Ok(())
    }

    fn given(&mut self, given: Given) {
        for appended in given.sessions {
            self.sources.add(appended.name.source, appended.report);
            if let Some(gathering) = self.sessions.get_mut(&appended.name) {
                gathering.meeting = Some(appended.meeting);
                gathering.waiting.splice(..0, appended.left);
            }
        }
        self.sources.gave(given.source);
        self.forget();
    }

    /// Forgets the sessions of sources that are durable to their end.
    fn forget(&mut self) {
        let open = self.sources.first_open();
        self.sessions.retain(|name, _| name.source >= open);
        self.open.retain(|_, source| *source >= open);
    }
}

/// Makes ready what was gathered for sessions and gives it to the store, attachments first.
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
        .map(async |(name, mut meeting, mut waiting)| {
            let mut report = ImportReport::default();
            if waiting.is_empty() {
                meeting.settle(&mut report).await;
            } else if meeting.is_wanted(&tl, &waiting).await {
                let waiting = std::mem::take(&mut waiting);
                meeting.append(&tl, waiting, &mut report).await;
            }
            Appended {
                name,
                meeting,
                left: waiting,
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
