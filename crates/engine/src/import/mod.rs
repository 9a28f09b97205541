//! Bringing sessions in from elsewhere, any number of times.
//!
//! Every entry gets an id that is a function of what it is, so that the second time it is
//! recognised. Entries are gathered and appended together, many sessions at once, which
//! lets the store commit them together.
//!
//! Invariant: nothing that is there is changed. What comes again and says otherwise, or
//! goes on from where somebody here has gone on too, becomes a fork.

mod gathering;
mod ledger;
mod place;

pub use ledger::{Ledger, LedgerRow};

use std::collections::HashMap;

use futures_util::future::join_all;
use throughline_model::{Block, Happened, Incoming, IncomingEntry, IncomingSession, Passed};

use crate::{Error, Throughline};
use gathering::Gathering;

/// How many entries are gathered before they are appended.
const GATHERED: usize = 16_384;
/// And how many bytes of them, about.
const GATHERED_BYTES: usize = 64 * 1024 * 1024;

/// What an import did.
#[derive(Debug, Default)]
pub struct ImportReport {
    /// Sessions made.
    pub created: u64,
    /// Of those, the ones that are forks because their source was rewritten, or because
    /// somebody went on here as well.
    pub forked: u64,
    /// Messages appended.
    pub appended: u64,
    /// Messages that were there already.
    pub known: u64,
    /// Records that were not taken, each kind with how often it came.
    pub passed: std::collections::BTreeMap<String, u64>,
    /// Damaged records: where, and what is wrong.
    pub damaged: Vec<(u64, String)>,
    /// Lines whose entries could not be appended, and why.
    pub failed: Vec<(u64, std::sync::Arc<Error>)>,
}

impl ImportReport {
    /// Adds another's figures to these.
    pub fn add(&mut self, other: Self) {
        self.created += other.created;
        self.forked += other.forked;
        self.appended += other.appended;
        self.known += other.known;
        for (what, times) in other.passed {
            *self.passed.entry(what).or_default() += times;
        }
        self.damaged.extend(other.damaged);
        self.failed.extend(other.failed);
    }
}

/// Takes in what comes, in order.
#[derive(Debug)]
pub struct Importer {
    tl: Throughline,
    report: ImportReport,
    sessions: HashMap<(Option<String>, String), Option<Gathering>>,
    current: Option<(Option<String>, String)>,
    blobs: Vec<Vec<u8>>,
    entries: usize,
    bytes: usize,
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
        }
    }

    /// Takes one thing in. It is durable after the next flush, at the latest when
    /// [`finish`](Self::finish) returns.
    pub async fn take(&mut self, incoming: Incoming) -> Result<(), Error> {
        match incoming {
            Incoming::Session(session) => self.session(*session).await,
            Incoming::Entry(entry) => self.entry(*entry).await,
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
                self.flush().await?;
            }
            let gathering = Gathering::new(session);
            self.sessions.insert(name.clone(), Some(gathering));
        }
        self.current = Some(name);
        Ok(())
    }

    async fn entry(&mut self, entry: IncomingEntry) -> Result<(), Error> {
        let current = self.current.as_ref();
        let Some(Some(gathering)) = current.and_then(|name| self.sessions.get_mut(name)) else {
            // The session cannot be had, which was told when it was tried.
            return Ok(());
        };
        self.bytes += size(&entry);
        self.entries += 1;
        gathering.take(entry);
        if self.entries >= GATHERED || self.bytes >= GATHERED_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Appends what is gathered and tells what was done.
    pub async fn finish(mut self) -> Result<ImportReport, Error> {
        self.flush().await?;
        self.report.failed.sort_by_key(|(line, _)| *line);
        self.report.damaged.sort_by_key(|(line, _)| *line);
        Ok(self.report)
    }

    /// How many messages have been appended or recognised so far.
    pub fn done(&self) -> u64 {
        self.report.appended + self.report.known
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let blobs = std::mem::take(&mut self.blobs);
        let tl = &self.tl;
        for put in join_all(blobs.into_iter().map(|bytes| tl.put_blob(bytes))).await {
            // Too large a file is told with the entry that names it.
            if let Err(error) = put
                && error.kind() != throughline_store::ErrorKind::Invalid
            {
                return Err(error);
            }
        }
        let waiting = self
            .sessions
            .values_mut()
            .filter_map(Option::as_mut)
            .filter(|gathering| gathering.waits())
            .map(|gathering| gathering.append(tl));
        for done in join_all(waiting).await {
            self.report.add(done);
        }
        self.entries = 0;
        self.bytes = 0;
        Ok(())
    }
}

fn size(entry: &IncomingEntry) -> usize {
    let text = match &entry.what {
        Happened::Body(body) => match body.message() {
            Some(message) => message
                .content
                .0
                .iter()
                .map(|block| match block {
                    Block::Text(text) | Block::Thinking { text, .. } => text.len(),
                    Block::ToolCall(call) => call.input.as_str().len(),
                    Block::ToolResult(result) => result.content.to_text().len(),
                    Block::Foreign(raw) => raw.as_str().len(),
                    _ => 64,
                })
                .sum(),
            None => 256,
        },
        _ => 256,
    };
    text + 256
}
