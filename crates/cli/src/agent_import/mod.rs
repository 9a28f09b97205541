//! Imports other agents' sessions from their files into the store.
//!
//! A reader thread parses the files while entries are stored. A ledger records what was read
//! of each source once it is durable, so that unchanged sources are skipped and grown ones
//! are read from where they ended.

mod agent_follower;
mod source_reader;
mod totals;

pub(crate) use agent_follower::AgentFollower;
pub(crate) use totals::{ImportTotals, print_table};

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use anyhow::Result;
use indicatif::ProgressBar;
use jiff::Timestamp;
use throughline::{
    ImportEvent, ImportRecord, ImportReport, Importer, IncomingEntry, IncomingItem,
    IncomingSession, Ledger, LedgerRow, Throughline,
};
use throughline_formats::{DiscoveryContext, Source, SourceCursor, SourceFormat, read_source};

use crate::app::App;
use crate::project;
use source_reader::{ReadJob, ReaderEvent};

/// Ledger rows written per batch.
const LEDGER_BATCH: usize = 256;

/// The outcome of importing one source.
#[derive(Debug)]
pub(crate) struct SourceOutcome {
    pub(crate) agent: SourceFormat,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sessions: u64,
    pub(crate) messages: u64,
    /// Messages that were imported earlier and not read again.
    pub(crate) known_before: u64,
    pub(crate) report: ImportReport,
    /// The error, if it could not be read.
    pub(crate) error: Option<String>,
}

impl SourceOutcome {
    /// Merges the outcome of a retry, which includes what was imported before.
    fn merge_retry(&mut self, again: Self) {
        let before = std::mem::replace(self, again).report;
        let report = &mut self.report;
        report.created += before.created;
        report.forked += before.forked;
        report.already_stored =
            report.already_stored.saturating_sub(before.appended) + before.already_stored;
        report.appended += before.appended;
    }
}

/// Imports sources, once or repeatedly.
pub(crate) struct AgentImporter {
    tl: Throughline,
    ledgers: HashMap<(SourceFormat, PathBuf), Ledger>,
    rows: BTreeMap<(SourceFormat, PathBuf), Vec<(String, LedgerRow)>>,
    pending_count: usize,
    projects: HashMap<(String, Option<String>), Option<String>>,
    dry_run: bool,
}

/// Returns the default session folders of an agent on this machine.
pub(crate) fn session_folders(app: &App, agent: SourceFormat) -> Vec<PathBuf> {
    let variable = |name: &str| app.paths.variable(name).map(ToOwned::to_owned);
    agent.default_paths(&DiscoveryContext {
        home: app.paths.home.as_deref(),
        folder: &app.paths.working_folder,
        variable: &variable,
    })
}

/// Returns the given paths, or the agent's default session folders.
fn source_roots(app: &App, agent: SourceFormat, paths: &[PathBuf]) -> Vec<PathBuf> {
    if paths.is_empty() {
        return session_folders(app, agent);
    }
    paths.iter().map(|path| app.resolve_path(path)).collect()
}

/// Finds all sources on this machine, limited to the given agents and paths.
pub(crate) fn find_sources(app: &App, agents: &[SourceFormat], paths: &[PathBuf]) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::new();
    let mut known = HashSet::new();
    for agent in agents {
        for root in source_roots(app, *agent, paths) {
            let sources = agent.find_sources(&root).into_iter();
            // The home and working folders may be the same.
            found.extend(sources.filter(|source| known.insert(source.path.clone())));
        }
    }
    found
}

impl AgentImporter {
    pub(crate) async fn new(app: &App, dry: bool) -> Result<Self> {
        Ok(Self {
            tl: app.tl().await?.clone(),
            ledgers: HashMap::new(),
            rows: BTreeMap::new(),
            pending_count: 0,
            projects: HashMap::new(),
            dry_run: dry,
        })
    }

    /// Imports what is new in these sources.
    pub(crate) async fn import(
        &mut self,
        sources: Vec<Source>,
        bar: &ProgressBar,
    ) -> Result<Vec<SourceOutcome>> {
        let mut outcomes = self.import_once(sources.clone(), bar).await?;
        // Another process appended to a session during the import: compare again.
        let disturbed = |outcome: &&mut SourceOutcome| outcome.report.should_retry;
        for outcome in outcomes.iter_mut().filter(disturbed) {
            let of = |source: &&Source| source.path == outcome.path;
            let source: Vec<_> = sources.iter().find(of).cloned().into_iter().collect();
            if let Some(again) = self.import_once(source, bar).await?.pop() {
                outcome.merge_retry(again);
            }
        }
        Ok(outcomes)
    }

    async fn import_once(
        &mut self,
        sources: Vec<Source>,
        bar: &ProgressBar,
    ) -> Result<Vec<SourceOutcome>> {
        let mut outcomes = Vec::new();
        let mut jobs = Vec::new();
        for source in sources {
            match self.plan_source(source).await? {
                Ok(job) => jobs.push(job),
                Err(unchanged) => outcomes.push(unchanged),
            }
        }
        bar.set_length(jobs.iter().map(|job| job.source.bytes).sum());
        let mut done = 0;
        let mut importer = Importer::new(self.tl.clone());
        let mut current = ReadCounts::default();
        let mut read = VecDeque::new();
        let mut events = source_reader::start_reader(jobs.clone(), self.dry_run)?;
        loop {
            let next = tokio::select! {
                next = events.recv() => next,
                tended = importer.drive() => {
                    tended?;
                    continue;
                }
            };
            match next {
                None => break,
                Some(ReaderEvent::Items(items)) => {
                    for incoming in items {
                        self.accept(&mut importer, &mut current, incoming).await?;
                    }
                }
                Some(ReaderEvent::Progress(bytes)) => bar.set_position(done + bytes),
                Some(ReaderEvent::Done { job, outcome: end }) => {
                    let job = &jobs[job];
                    done += job.source.bytes;
                    bar.set_position(done);
                    importer.next_source();
                    read.push_back((job, *end, std::mem::take(&mut current)));
                    self.collect_finished(&mut importer, &mut read, &mut outcomes)
                        .await?;
                }
            }
        }
        importer.flush().await?;
        self.collect_finished(&mut importer, &mut read, &mut outcomes)
            .await?;
        self.flush_ledgers().await?;
        Ok(outcomes)
    }

    /// Collects the outcomes of sources that are durable by now.
    async fn collect_finished(
        &mut self,
        importer: &mut Importer,
        read: &mut VecDeque<(&ReadJob, source_reader::ReadOutcome, ReadCounts)>,
        outcomes: &mut Vec<SourceOutcome>,
    ) -> Result<()> {
        for report in importer.take_finished() {
            if let Some((job, end, read)) = read.pop_front() {
                outcomes.push(self.finish_source(report, read, job, end).await?);
            }
        }
        Ok(())
    }

    /// Decides what to read of a source, or that nothing needs to be read.
    async fn plan_source(&mut self, source: Source) -> Result<Result<ReadJob, SourceOutcome>> {
        let (folder, name) = split_path(&source.path);
        let key = (source.format, folder.clone());
        if !self.ledgers.contains_key(&key) {
            let folder = folder.to_string_lossy();
            let ledger = self.tl.load_ledger(source.format.name(), &folder).await?;
            self.ledgers.insert(key.clone(), ledger);
        }
        let row = self.ledgers.get(&key).and_then(|ledger| ledger.row(&name));
        let row = row.cloned();
        if let Some(row) = &row
            && row.bytes == source.bytes
            && Some(row.modified) == source.modified.map(Timestamp::as_microsecond)
        {
            return Ok(Err(SourceOutcome {
                agent: source.format,
                path: source.path,
                bytes: source.bytes,
                sessions: row.sessions,
                messages: row.messages,
                known_before: row.messages,
                report: ImportReport::default(),
                error: None,
            }));
        }
        let bookmark: Option<SourceCursor> = row
            .as_ref()
            .and_then(|row| row.reader.as_ref()?.decode().ok());
        Ok(Ok(ReadJob {
            source,
            row,
            bookmark,
        }))
    }

    async fn accept(
        &mut self,
        importer: &mut Importer,
        current: &mut ReadCounts,
        mut arriving: ImportRecord,
    ) -> Result<()> {
        match arriving.incoming() {
            IncomingItem::Session(session) => {
                current.sessions.insert(session.id.clone());
            }
            IncomingItem::Entry(entry) => {
                current.messages += u64::from(is_message(entry));
            }
            IncomingItem::Blob(_) => {}
            IncomingItem::Skipped(_) => {
                return Ok(importer.add(arriving).await?);
            }
        }
        if !self.dry_run {
            if let Some(session) = arriving.session_mut() {
                self.resolve_project(session).await?;
            }
            importer.add(arriving).await?;
        }
        Ok(())
    }

    /// Sets the project of a session from its folder.
    async fn resolve_project(&mut self, session: &mut IncomingSession) -> Result<()> {
        let Some(folder) = session.workspace.clone() else {
            return Ok(());
        };
        let key = (folder, session.remote.clone());
        if !self.projects.contains_key(&key) {
            let (folder, remote) = (Path::new(&key.0), key.1.as_deref());
            let project = if folder.is_absolute() {
                project::resolve_named(&self.tl, folder, remote).await?
            } else {
                None
            };
            let id = project.map(|project| project.id.as_str().to_owned());
            self.projects.insert(key.clone(), id);
        }
        session.project = self.projects.get(&key).cloned().flatten();
        Ok(())
    }

    async fn finish_source(
        &mut self,
        report: ImportReport,
        read: ReadCounts,
        job: &ReadJob,
        end: source_reader::ReadOutcome,
    ) -> Result<SourceOutcome> {
        let resumed = end.resumed;
        let before = job.row.as_ref().filter(|_| resumed);
        // A source that only references sessions contains none.
        let sessions = match read.messages {
            0 => 0,
            _ => read.sessions.len() as u64,
        };
        let known_before = before.map_or(0, |row| row.messages);
        let read_on = end.next.as_ref().is_some_and(|next| next.offset > 0);
        let (messages, known_before) = if read_on || !resumed {
            (known_before + read.messages, known_before)
        } else {
            // A database source returns a changed session completely.
            let messages = (known_before + report.appended).max(read.messages);
            (messages, known_before.saturating_sub(report.already_stored))
        };
        let outcome = SourceOutcome {
            agent: job.source.format,
            path: job.source.path.clone(),
            bytes: job.source.bytes,
            sessions: before.map_or(0, |row| row.sessions).max(sessions),
            messages,
            known_before,
            report,
            error: end.error,
        };
        // Failed sources are retried next time.
        if !self.dry_run
            && outcome.error.is_none()
            && outcome.report.failed.is_empty()
            && let Some(modified) = job.source.modified
        {
            let (folder, name) = split_path(&job.source.path);
            let row = LedgerRow {
                bytes: job.source.bytes,
                modified: modified.as_microsecond(),
                read: end.next.as_ref().map_or(0, |next| next.offset),
                digest: end.digest,
                reader: end.next.and_then(|next| throughline::Json::of(&next).ok()),
                sessions: outcome.sessions,
                messages: outcome.messages,
            };
            let key = (job.source.format, folder);
            self.rows.entry(key).or_default().push((name, row));
            self.pending_count += 1;
            if self.pending_count >= LEDGER_BATCH {
                self.flush_ledgers().await?;
            }
        }
        Ok(outcome)
    }

    /// Writes the ledger rows; their entries are durable by now.
    async fn flush_ledgers(&mut self) -> Result<()> {
        for (key, rows) in std::mem::take(&mut self.rows) {
            if let Some(ledger) = self.ledgers.get_mut(&key) {
                ledger.record(rows).await?;
            }
        }
        self.pending_count = 0;
        Ok(())
    }
}

/// Records a file as completely imported, because it was written from the store.
pub(crate) async fn record_written_file(
    tl: &Throughline,
    agent: SourceFormat,
    path: &Path,
) -> Result<()> {
    let Some(source) = agent.find_sources(path).into_iter().next() else {
        return Ok(());
    };
    let (mut sessions, mut messages) = (0, 0);
    let next = read_source(agent, path, None, &mut |incoming| {
        match incoming {
            IncomingItem::Session(_) => sessions += 1,
            IncomingItem::Entry(entry) => messages += u64::from(is_message(&entry)),
            IncomingItem::Blob(_) | IncomingItem::Skipped(_) => {}
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
        digest: source_reader::prefix_digest(path, read)?,
        reader: next.and_then(|next| throughline::Json::of(&next).ok()),
        sessions,
        messages,
    };
    let (folder, name) = split_path(path);
    let mut ledger = tl
        .load_ledger(agent.name(), &folder.to_string_lossy())
        .await?;
    Ok(ledger.record(vec![(name, row)]).await?)
}

fn is_message(entry: &IncomingEntry) -> bool {
    matches!(&entry.event, ImportEvent::Body(body) if body.message().is_some())
}

/// Counts of what was read of a source.
#[derive(Default)]
struct ReadCounts {
    sessions: HashSet<String>,
    messages: u64,
}

/// Splits a path into folder and name.
fn split_path(path: &Path) -> (PathBuf, String) {
    let folder = path.parent().unwrap_or(path).to_owned();
    let name = path.file_name().unwrap_or_default();
    (folder, name.to_string_lossy().into_owned())
}
