//! Salvages everything readable from a damaged store file into a new store.
//!
//! The file is read page by page, without SQLite and without its B-trees: rows are recognized
//! by their shape wherever they are found. Entries that their digests prove are copied
//! unchanged; entries that cannot be proven are copied and reported as unverified; entries that
//! the digests disprove are not copied. Every loss is reported.
//!
//! A separate thread reads the file, a few steps ahead of the store that is written.

mod lineage;
mod page_format;
mod page_reader;
mod plan;
mod record_format;
mod row_decode;
mod salvager;
mod scan;
mod verify;
mod wal_reader;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Serialize;
use throughline_model::{
    ApiToken, Owner, Project, Seq, SessionHeader, SessionId, SessionRef, StoredEntry, Timestamp,
};
use throughline_store::{ProgressCallback, Store, StoreError};
use tokio::sync::mpsc;

use self::page_reader::PageReader;
use self::salvager::Salvager;
use self::scan::ScanResult;

/// What was salvaged from a damaged file, and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// Sessions salvaged, at least in part.
    pub sessions: u64,
    /// Entries salvaged; entries that forks still share are counted once.
    pub entries: u64,
    /// Salvaged entries that are readable but could not be verified, because the entries before
    /// them are lost.
    pub unverified: u64,
    /// Attachments salvaged.
    pub blobs: u64,
    /// Entries that are lost.
    pub lost: Vec<Loss>,
    /// Further notes for the user: what had to be reconstructed, and what was found but cannot
    /// be trusted.
    pub notes: Vec<String>,
}

/// Lost entries of one session.
///
/// Each is replaced by a placeholder, unless nothing after it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The session's owner, by the name in the new store.
    pub owner: Owner,
    /// The session's id in the new store.
    pub session: SessionId,
    /// The lost entries, as inclusive ranges.
    pub entries: Vec<(Seq, Seq)>,
    /// Why they were lost.
    pub why: String,
}

/// A step to apply to the new store.
enum SalvageStep {
    /// Upper bound on the number of entries to come.
    Total(u64),
    Blob(Owner, Vec<u8>),
    Project(Owner, Project),
    Token(ApiToken),
    Fork {
        of: SessionRef,
        at: Seq,
        header: SessionHeader,
    },
    /// Creates or continues a session; the last field is the number of entries done after it.
    Adopt(Owner, SessionHeader, Vec<StoredEntry>, u64),
    Trash(SessionRef, Timestamp),
    Done(SalvageReport),
    Failed(std::io::Error),
}

/// The receiving side was dropped.
struct Cancelled;

/// Salvages every readable entry from the damaged file `damaged` and the write-ahead log beside
/// it into the empty store `into`.
///
/// The damaged file is only read. No other process may have it open meanwhile.
pub async fn salvage(
    damaged: &Path,
    into: &dyn Store,
    progress: ProgressCallback<'_>,
) -> Result<SalvageReport, StoreError> {
    let failed = |source| StoreError::Backend {
        during: "reading the damaged store",
        source,
    };
    if !into.owners().await?.is_empty() {
        return Err(StoreError::Backend {
            during: "salvaging",
            source: "the store to salvage into is not empty".into(),
        });
    }
    let path = damaged.to_owned();
    let (send, mut steps) = mpsc::channel(4);
    std::thread::Builder::new()
        .name("tl-salvage".to_owned())
        .spawn(move || {
            // If the receiver was dropped there is nobody to report to.
            let _ = read_damaged_file(&path, &mut |step| {
                send.blocking_send(step).map_err(|_| Cancelled)
            });
        })
        .map_err(|source| failed(source.into()))?;
    let mut total = 0;
    while let Some(step) = steps.recv().await {
        match step {
            SalvageStep::Total(entries) => {
                total = entries;
                progress(0, total);
            }
            SalvageStep::Blob(owner, bytes) => {
                into.put_blob(&owner, bytes).await?;
            }
            SalvageStep::Project(owner, project) => into.put_project(&owner, &project).await?,
            SalvageStep::Token(token) => match into.insert_token(&token).await {
                // A stale copy of the same row: one of them is enough.
                Ok(()) | Err(StoreError::TokenExists(_)) => {}
                Err(error) => return Err(error),
            },
            SalvageStep::Fork { of, at, header } => {
                into.fork(&of, at, header).await?;
            }
            SalvageStep::Adopt(owner, header, entries, done) => {
                into.import_log(&owner, header, entries).await?;
                progress(done.min(total), total);
            }
            SalvageStep::Trash(session, at) => into.trash(&session, at).await?,
            SalvageStep::Done(salvaged) => {
                progress(total, total);
                return Ok(salvaged);
            }
            SalvageStep::Failed(error) => {
                let what = format!("{}: {error}", damaged.display());
                return Err(failed(what.into()));
            }
        }
    }
    Err(failed("the salvage thread ended unexpectedly".into()))
}

/// Reads the whole file and sends the steps.
fn read_damaged_file(
    path: &Path,
    send: &mut dyn FnMut(SalvageStep) -> Result<(), Cancelled>,
) -> Result<(), Cancelled> {
    let mut notes = Vec::new();
    let mut pages = match PageReader::open(path, &mut notes) {
        Ok(pages) => pages,
        Err(error) => return send(SalvageStep::Failed(error)),
    };
    let found = scan::scan(&mut pages);
    let plan = plan::make_plan(&found, &mut pages, &mut notes);
    send(SalvageStep::Total(count_distinct_entries(&found)))?;
    let joints: HashMap<_, _> = plan
        .sessions
        .values()
        .filter_map(|session| session.inherited.last())
        .map(|last| ((last.session, last.to.0), None))
        .collect();
    let mut walker = Salvager {
        pages: &mut pages,
        found: &found,
        plan: &plan,
        report: SalvageReport {
            notes,
            ..SalvageReport::default()
        },
        send,
        fork_point_digests: joints,
        intact_upto: HashMap::new(),
        blobs: BTreeSet::new(),
        referenced_blobs: BTreeSet::new(),
    };
    walker.salvage_blobs()?;
    for ((owner, _), project) in &found.projects {
        (walker.send)(SalvageStep::Project(plan.owner(*owner), project.clone()))?;
    }
    for (pk, planned) in &plan.sessions {
        walker.salvage_session(*pk, planned)?;
    }
    for planned in plan.sessions.values() {
        if let Some(at) = planned.trashed {
            (walker.send)(SalvageStep::Trash(
                planned.owner.session(&planned.header.id),
                at,
            ))?;
        }
    }
    // A server that required tokens must not become open because its store was damaged.
    for token in found.tokens.values() {
        (walker.send)(SalvageStep::Token(token.clone()))?;
    }
    walker.note_missing();
    let mut report = walker.report;
    if !found.tokens.is_empty() {
        report.notes.push(format!(
            "tokens found: {}; all of them are now revoked, since a revocation may be lost",
            found.tokens.len()
        ));
    }
    if report.sessions == 0 {
        let nothing = "no sessions were found";
        report.notes.push(nothing.to_owned());
    }
    if pages.failed_reads > 0 {
        report.notes.push(format!(
            "{} reads of the file failed; the unreadable parts were skipped",
            pages.failed_reads
        ));
    }
    send(SalvageStep::Done(report))
}

/// Counts the entries found, ignoring duplicate copies.
fn count_distinct_entries(found: &ScanResult) -> u64 {
    let mut count = 0;
    let mut last = None;
    for location in &found.entries {
        if last != Some(location.key) {
            count += 1;
        }
        last = Some(location.key);
    }
    count
}

impl Salvager<'_> {
    /// Copies the attachments.
    fn salvage_blobs(&mut self) -> Result<(), Cancelled> {
        for location in &self.found.blobs {
            let Some((owner, digest, Some(bytes))) = location.read_blob(self.pages) else {
                continue;
            };
            let owner = self.plan.owner(owner);
            if self.blobs.insert((owner.clone(), digest)) {
                self.report.blobs += 1;
                (self.send)(SalvageStep::Blob(owner, bytes))?;
            }
        }
        Ok(())
    }

    /// Notes what must have existed but was not found at all.
    fn note_missing(&mut self) {
        for (owner, digest) in self.referenced_blobs.difference(&self.blobs) {
            self.report.notes.push(format!(
                "attachment {digest} of {owner} is lost, although entries refer to it"
            ));
        }
        let mut unknown: Vec<_> = self.found.last_indexed.iter().collect();
        unknown.retain(|(pk, _)| {
            !self.plan.sessions.contains_key(pk) && !self.found.sessions.contains_key(pk)
        });
        unknown.sort_unstable();
        for (pk, tail) in unknown {
            self.report.notes.push(format!(
                "session number {pk} is lost completely; it had entries up to {tail}"
            ));
        }
    }
}
