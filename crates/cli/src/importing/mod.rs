//! Bringing in the sessions of other agents: from their files, through a reader on a thread
//! of its own, into the store.
//!
//! What was read of which source is noted in a ledger once it is durable, so that a source
//! that did not change is not read again and one that grew is read from where it had ended.

mod following;
mod reading;
mod totals;

pub(crate) use following::Following;
pub(crate) use totals::{Totals, table};

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::Result;
use indicatif::ProgressBar;
use jiff::Timestamp;
use throughline::{
    Arriving, Happened, ImportReport, Importer, Incoming, IncomingEntry, IncomingSession, Ledger,
    LedgerRow, Throughline,
};
use throughline_formats::{Agent, Around, Bookmark, Source, read_source};

use crate::app::App;
use crate::project;
use reading::{Job, Told};

/// Rows of a ledger that are noted together.
const NOTED: usize = 256;

/// What became of one source.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) agent: Agent,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    /// Messages in it that need not be read again.
    pub(crate) before: u64,
    pub(crate) report: ImportReport,
    /// Why it could not be read.
    pub(crate) error: Option<String>,
}

impl Outcome {
    /// It was taken once more, and that time with what had come in before.
    fn taken_again(&mut self, again: Self) {
        let before = std::mem::replace(self, again).report;
        let report = &mut self.report;
        report.created += before.created;
        report.forked += before.forked;
        report.known = report.known.saturating_sub(before.appended) + before.known;
        report.appended += before.appended;
    }
}

/// Brings sources in, one time or again and again.
pub(crate) struct Bringing {
    tl: Throughline,
    ledgers: HashMap<(Agent, PathBuf), Ledger>,
    rows: BTreeMap<(Agent, PathBuf), Vec<(String, LedgerRow)>>,
    waiting: usize,
    projects: HashMap<(String, Option<String>), Option<String>>,
    dry: bool,
}

/// Where an agent keeps its sessions on this machine.
pub(crate) fn kept_by(app: &App, agent: Agent) -> Vec<PathBuf> {
    let variable = |name: &str| app.places.variable(name).map(ToOwned::to_owned);
    agent.places(&Around {
        home: app.places.home.as_deref(),
        folder: &app.places.folder,
        variable: &variable,
    })
}

/// Where to look for an agent's sessions: at these places, or where it keeps them.
fn roots(app: &App, agent: Agent, places: &[PathBuf]) -> Vec<PathBuf> {
    if places.is_empty() {
        return kept_by(app, agent);
    }
    places.iter().map(|place| app.path(place)).collect()
}

/// Every source on this machine, or of these agents, or at these places.
pub(crate) fn sources(app: &App, agents: &[Agent], places: &[PathBuf]) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::new();
    let mut known = HashSet::new();
    for agent in agents {
        for root in roots(app, *agent, places) {
            let sources = agent.sources(&root).into_iter();
            // Home and working folder may be one.
            found.extend(sources.filter(|source| known.insert(source.path.clone())));
        }
    }
    found
}

impl Bringing {
    pub(crate) async fn new(app: &App, dry: bool) -> Result<Self> {
        Ok(Self {
            tl: app.tl().await?.clone(),
            ledgers: HashMap::new(),
            rows: BTreeMap::new(),
            waiting: 0,
            projects: HashMap::new(),
            dry,
        })
    }

    /// Brings in what is new in these sources.
    pub(crate) async fn bring(
        &mut self,
        sources: Vec<Source>,
        bar: &ProgressBar,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = self.bring_once(sources.clone(), bar).await?;
        // Somebody went on in a session while it came in: it is compared with that.
        let disturbed = |outcome: &&mut Outcome| outcome.report.disturbed;
        for outcome in outcomes.iter_mut().filter(disturbed) {
            let of = |source: &&Source| source.path == outcome.path;
            let source: Vec<_> = sources.iter().find(of).cloned().into_iter().collect();
            if let Some(again) = self.bring_once(source, bar).await?.pop() {
                outcome.taken_again(again);
            }
        }
        Ok(outcomes)
    }

    async fn bring_once(
        &mut self,
        sources: Vec<Source>,
        bar: &ProgressBar,
    ) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        let mut jobs = Vec::new();
        for source in sources {
            match self.job(source).await? {
                Ok(job) => jobs.push(job),
                Err(unchanged) => outcomes.push(unchanged),
            }
        }
        bar.set_length(jobs.iter().map(|job| job.source.bytes).sum());
        let mut done = 0;
        let mut importer = Importer::new(self.tl.clone());
        let mut current = Read::default();
        let mut read = VecDeque::new();
        let mut told = reading::start(jobs.clone(), self.dry)?;
        loop {
            let next = tokio::select! {
                next = told.recv() => next,
                tended = importer.tend() => {
                    tended?;
                    continue;
                }
            };
            match next {
                None => break,
                Some(Told::Items(items)) => {
                    for incoming in items {
                        self.take(&mut importer, &mut current, incoming).await?;
                    }
                }
                Some(Told::Read(bytes)) => bar.set_position(done + bytes),
                Some(Told::Done { job, end }) => {
                    let job = &jobs[job];
                    done += job.source.bytes;
                    bar.set_position(done);
                    importer.next_source();
                    read.push_back((job, *end, std::mem::take(&mut current)));
                    self.finished(&mut importer, &mut read, &mut outcomes)
                        .await?;
                }
            }
        }
        importer.settle().await?;
        self.finished(&mut importer, &mut read, &mut outcomes)
            .await?;
        self.note().await?;
        Ok(outcomes)
    }

    /// Tells of the sources that were read and are durable by now.
    async fn finished(
        &mut self,
        importer: &mut Importer,
        read: &mut VecDeque<(&Job, reading::End, Read)>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<()> {
        for report in importer.finished() {
            if let Some((job, end, read)) = read.pop_front() {
                outcomes.push(self.finish(report, read, job, end).await?);
            }
        }
        Ok(())
    }

    /// What is to be read of a source; or that nothing is.
    async fn job(&mut self, source: Source) -> Result<Result<Job, Outcome>> {
        let (folder, name) = halves(&source.path);
        let place = (source.agent, folder.clone());
        if !self.ledgers.contains_key(&place) {
            let folder = folder.to_string_lossy();
            let ledger = self.tl.ledger(source.agent.name(), &folder).await?;
            self.ledgers.insert(place.clone(), ledger);
        }
        let row = self
            .ledgers
            .get(&place)
            .and_then(|ledger| ledger.row(&name));
        let row = row.cloned();
        if let Some(row) = &row
            && row.bytes == source.bytes
            && Some(row.modified) == source.modified.map(Timestamp::as_microsecond)
        {
            return Ok(Err(Outcome {
                agent: source.agent,
                path: source.path,
                bytes: source.bytes,
                sessions: row.sessions,
                messages: row.messages,
                before: row.messages,
                report: ImportReport::default(),
                error: None,
            }));
        }
        let bookmark: Option<Bookmark> = row
            .as_ref()
            .and_then(|row| row.reader.as_ref()?.decode().ok());
        Ok(Ok(Job {
            source,
            row,
            bookmark,
        }))
    }

    async fn take(
        &mut self,
        importer: &mut Importer,
        current: &mut Read,
        mut arriving: Arriving,
    ) -> Result<()> {
        match arriving.incoming() {
            Incoming::Session(session) => {
                current.sessions.insert(session.id.clone());
            }
            Incoming::Entry(entry) => {
                current.messages += u64::from(is_message(entry));
            }
            Incoming::Blob(_) => {}
            Incoming::Passed(_) => {
                return Ok(importer.take(arriving).await?);
            }
        }
        if !self.dry {
            if let Some(session) = arriving.session_mut() {
                self.settle(session).await?;
            }
            importer.take(arriving).await?;
        }
        Ok(())
    }

    /// Finds the project of a session by the folder it was in.
    async fn settle(&mut self, session: &mut IncomingSession) -> Result<()> {
        let Some(folder) = session.workspace.clone() else {
            return Ok(());
        };
        let place = (folder, session.remote.clone());
        if !self.projects.contains_key(&place) {
            let (folder, remote) = (Path::new(&place.0), place.1.as_deref());
            let project = if folder.is_absolute() {
                project::named(&self.tl, folder, remote).await?
            } else {
                None
            };
            let id = project.map(|project| project.id.as_str().to_owned());
            self.projects.insert(place.clone(), id);
        }
        session.project = self.projects.get(&place).cloned().flatten();
        Ok(())
    }

    async fn finish(
        &mut self,
        report: ImportReport,
        read: Read,
        job: &Job,
        end: reading::End,
    ) -> Result<Outcome> {
        let resumed = end.resumed;
        let before = job.row.as_ref().filter(|_| resumed);
        // A source that only names sessions has none of its own.
        let sessions = match read.messages {
            0 => 0,
            _ => read.sessions.len() as u64,
        };
        let known_before = before.map_or(0, |row| row.messages);
        let read_on = end.next.as_ref().is_some_and(|next| next.offset > 0);
        let (messages, known_before) = if read_on || !resumed {
            (known_before + read.messages, known_before)
        } else {
            // A database tells the whole of a session in which something changed.
            let messages = (known_before + report.appended).max(read.messages);
            (messages, known_before.saturating_sub(report.known))
        };
        let outcome = Outcome {
            agent: job.source.agent,
            path: job.source.path.clone(),
            bytes: job.source.bytes,
            sessions: before.map_or(0, |row| row.sessions).max(sessions),
            messages,
            before: known_before,
            report,
            error: end.error,
        };
        // What failed is tried again next time.
        if !self.dry
            && outcome.error.is_none()
            && outcome.report.failed.is_empty()
            && let Some(modified) = job.source.modified
        {
            let (folder, name) = halves(&job.source.path);
            let row = LedgerRow {
                bytes: job.source.bytes,
                modified: modified.as_microsecond(),
                read: end.next.as_ref().map_or(0, |next| next.offset),
                digest: end.digest,
                reader: end.next.and_then(|next| throughline::Json::of(&next).ok()),
                sessions: outcome.sessions,
                messages: outcome.messages,
            };
            let place = (job.source.agent, folder);
            self.rows.entry(place).or_default().push((name, row));
            self.waiting += 1;
            if self.waiting >= NOTED {
                self.note().await?;
            }
        }
        Ok(outcome)
    }

    /// Notes what was read; everything it tells of is durable by now.
    async fn note(&mut self) -> Result<()> {
        for (place, rows) in std::mem::take(&mut self.rows) {
            if let Some(ledger) = self.ledgers.get_mut(&place) {
                ledger.note(rows).await?;
            }
        }
        self.waiting = 0;
        Ok(())
    }
}

/// Notes that all of a file is here already: it was written from here.
pub(crate) async fn note_written(tl: &Throughline, agent: Agent, path: &Path) -> Result<()> {
    let Some(source) = agent.sources(path).into_iter().next() else {
        return Ok(());
    };
    let (mut sessions, mut messages) = (0, 0);
    let next = read_source(agent, path, None, &mut |incoming| {
        match incoming {
            Incoming::Session(_) => sessions += 1,
            Incoming::Entry(entry) => messages += u64::from(is_message(&entry)),
            Incoming::Blob(_) | Incoming::Passed(_) => {}
        }
        true
    })?;
    let Some(modified) = source.modified else {
        return Ok(());
    };
    let read = next.as_ref().map_or(0, |next| next.offset);
    let row = LedgerRow {
        bytes: source.bytes,
        modified: modified.as_microsecond(),
        read,
        digest: reading::prefix(path, read)?,
        reader: next.and_then(|next| throughline::Json::of(&next).ok()),
        sessions,
        messages,
    };
    let (folder, name) = halves(path);
    let mut ledger = tl.ledger(agent.name(), &folder.to_string_lossy()).await?;
    Ok(ledger.note(vec![(name, row)]).await?)
}

fn is_message(entry: &IncomingEntry) -> bool {
    matches!(&entry.what, Happened::Body(body) if body.message().is_some())
}

/// What was read of a source.
#[derive(Default)]
struct Read {
    sessions: HashSet<String>,
    messages: u64,
}

/// A path's folder and name.
fn halves(path: &Path) -> (PathBuf, String) {
    let folder = path.parent().unwrap_or(path).to_owned();
    let name = path.file_name().unwrap_or_default();
    (folder, name.to_string_lossy().into_owned())
}
