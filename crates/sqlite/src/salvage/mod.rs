//! Getting everything readable out of a damaged file.
//!
//! The file is read page by page, without SQLite and without its trees: a row is
//! recognised by its own shape wherever it is found. What the digests prove is brought
//! over as it was; what they cannot prove is said to be unverified, and what they
//! disprove is not brought over. Nothing is passed over in silence.
//!
//! Reading is done by a thread of its own, a few steps ahead of the store that is
//! written.

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

/// What was got out of a damaged file, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// Sessions brought over, if only in part.
    pub sessions: u64,
    /// Entries brought over; what a fork still shares is counted once.
    pub entries: u64,
    /// Entries among them that read well but could not be verified, since what came
    /// before them is lost.
    pub unverified: u64,
    /// Attachments brought over.
    pub blobs: u64,
    /// What is lost.
    pub lost: Vec<Loss>,
    /// What else is to be known: what had to be made up, and what was found that cannot
    /// be trusted.
    pub notes: Vec<String>,
}

/// Entries of one session that are lost.
///
/// Each has a placeholder in its stead, unless nothing after it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Whose session, as it is called now.
    pub owner: Owner,
    /// Which session, as it is called now.
    pub session: SessionId,
    /// The entries, as ranges with both ends.
    pub entries: Vec<(Seq, Seq)>,
    /// What became of them.
    pub why: String,
}

/// Something to do to the new store.
enum SalvageStep {
    /// How many entries are to come, at most.
    Total(u64),
    Blob(Owner, Vec<u8>),
    Project(Owner, Project),
    Token(ApiToken),
    Fork {
        of: SessionRef,
        at: Seq,
        birth: SessionHeader,
    },
    /// Makes or continues a session; with how many entries are done after it.
    Adopt(Owner, SessionHeader, Vec<StoredEntry>, u64),
    Trash(SessionRef, Timestamp),
    Done(SalvageReport),
    Failed(std::io::Error),
}

/// Whoever asked has gone away.
struct Cancelled;

/// Gets every readable entry out of the damaged file `damaged`, and out of the log
/// beside it, into the empty store `into`.
///
/// The damaged file is only read. Nobody may have it open meanwhile.
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
            // If nobody listens any more there is nobody to tell.
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
                // A damaged copy of the same row: one of them is enough.
                Ok(()) | Err(StoreError::TokenExists(_)) => {}
                Err(error) => return Err(error),
            },
            SalvageStep::Fork { of, at, birth } => {
                into.fork(&of, at, birth).await?;
            }
            SalvageStep::Adopt(owner, birth, entries, done) => {
                into.import_log(&owner, birth, entries).await?;
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
    Err(failed("it ended without an answer".into()))
}

/// Reads everything and sends it off.
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
                planned.owner.session(&planned.birth.id),
                at,
            ))?;
        }
    }
    // A server that required tokens must not be open because its store was damaged.
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
        let nothing = "nothing was found that looks like a session";
        report.notes.push(nothing.to_owned());
    }
    if pages.failed_reads > 0 {
        report.notes.push(format!(
            "{} reads of the file failed; what should have been there was taken for nothing",
            pages.failed_reads
        ));
    }
    send(SalvageStep::Done(report))
}

/// How many entries there are, copies aside.
fn count_distinct_entries(found: &ScanResult) -> u64 {
    let mut count = 0;
    let mut last = None;
    for place in &found.entries {
        if last != Some(place.key) {
            count += 1;
        }
        last = Some(place.key);
    }
    count
}

impl Salvager<'_> {
    /// Brings over the attachments.
    fn salvage_blobs(&mut self) -> Result<(), Cancelled> {
        for place in &self.found.blobs {
            let Some((owner, digest, Some(bytes))) = place.read_blob(self.pages) else {
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

    /// Notes what should have been there and was not found at all.
    fn note_missing(&mut self) {
        for (owner, digest) in self.referenced_blobs.difference(&self.blobs) {
            self.report.notes.push(format!(
                "attachment {digest} of {owner}, which entries name, is lost"
            ));
        }
        let mut unknown: Vec<_> = self.found.last_indexed.iter().collect();
        unknown.retain(|(pk, _)| {
            !self.plan.sessions.contains_key(pk) && !self.found.sessions.contains_key(pk)
        });
        unknown.sort_unstable();
        for (pk, tail) in unknown {
            self.report.notes.push(format!(
                "there was a session number {pk} with entries up to {tail}, of which nothing is \
                 left"
            ));
        }
    }
}
