//! Getting everything readable out of a damaged file.
//!
//! The file is read page by page, without SQLite and without its trees: a row is
//! recognised by its own shape wherever it is found. What the digests prove is brought
//! over as it was; what they cannot prove is said to be unverified, and what they
//! disprove is not brought over. Nothing is passed over in silence.
//!
//! Reading is done by a thread of its own, a few steps ahead of the store that is
//! written.

mod format;
mod judge;
mod lineage;
mod pages;
mod plan;
mod record;
mod rows;
mod scan;
mod wal;
mod walk;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Serialize;
use throughline_model::{
    Birth, Owner, Project, Seq, SessionId, SessionRef, StoredEntry, Timestamp, Token,
};
use throughline_store::{Progress, Store, StoreError};
use tokio::sync::mpsc;

use self::pages::Pages;
use self::scan::Found;
use self::walk::Walker;

/// What was got out of a damaged file, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Salvaged {
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
enum Step {
    /// How many entries are to come, at most.
    Total(u64),
    Blob(Owner, Vec<u8>),
    Project(Owner, Project),
    Token(Token),
    Fork {
        of: SessionRef,
        at: Seq,
        birth: Birth,
    },
    /// Makes or continues a session; with how many entries are done after it.
    Adopt(Owner, Birth, Vec<StoredEntry>, u64),
    Trash(SessionRef, Timestamp),
    Done(Salvaged),
    Failed(std::io::Error),
}

/// Whoever asked has gone away.
struct Stopped;

/// Gets every readable entry out of the damaged file `damaged`, and out of the log
/// beside it, into the empty store `into`.
///
/// The damaged file is only read. Nobody may have it open meanwhile.
pub async fn salvage(
    damaged: &Path,
    into: &dyn Store,
    progress: Progress<'_>,
) -> Result<Salvaged, StoreError> {
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
            let _ = read(&path, &mut |step| {
                send.blocking_send(step).map_err(|_| Stopped)
            });
        })
        .map_err(|source| failed(source.into()))?;
    let mut total = 0;
    while let Some(step) = steps.recv().await {
        match step {
            Step::Total(entries) => {
                total = entries;
                progress(0, total);
            }
            Step::Blob(owner, bytes) => {
                into.put_blob(&owner, bytes).await?;
            }
            Step::Project(owner, project) => into.put_project(&owner, &project).await?,
            Step::Token(token) => match into.put_token(&token).await {
                // A damaged copy of the same row: one of them is enough.
                Ok(()) | Err(StoreError::TokenExists(_)) => {}
                Err(error) => return Err(error),
            },
            Step::Fork { of, at, birth } => {
                into.fork(&of, at, birth).await?;
            }
            Step::Adopt(owner, birth, entries, done) => {
                into.adopt(&owner, birth, entries).await?;
                progress(done.min(total), total);
            }
            Step::Trash(session, at) => into.trash(&session, at).await?,
            Step::Done(salvaged) => {
                progress(total, total);
                return Ok(salvaged);
            }
            Step::Failed(error) => {
                let what = format!("{}: {error}", damaged.display());
                return Err(failed(what.into()));
            }
        }
    }
    Err(failed("it ended without an answer".into()))
}

/// Reads everything and sends it off.
fn read(path: &Path, send: &mut dyn FnMut(Step) -> Result<(), Stopped>) -> Result<(), Stopped> {
    let mut notes = Vec::new();
    let mut pages = match Pages::open(path, &mut notes) {
        Ok(pages) => pages,
        Err(error) => return send(Step::Failed(error)),
    };
    let found = scan::scan(&mut pages);
    let plan = plan::plan(&found, &mut pages, &mut notes);
    send(Step::Total(distinct(&found)))?;
    let joints: HashMap<_, _> = plan
        .sessions
        .values()
        .filter_map(|session| session.inherited.last())
        .map(|last| ((last.session, last.to.0), None))
        .collect();
    let mut walker = Walker {
        pages: &mut pages,
        found: &found,
        plan: &plan,
        report: Salvaged {
            notes,
            ..Salvaged::default()
        },
        send,
        joints,
        intact: HashMap::new(),
        blobs: BTreeSet::new(),
        named: BTreeSet::new(),
    };
    walker.attachments()?;
    for ((owner, _), project) in &found.projects {
        (walker.send)(Step::Project(plan.owner(*owner), project.clone()))?;
    }
    for (pk, planned) in &plan.sessions {
        walker.session(*pk, planned)?;
    }
    for planned in plan.sessions.values() {
        if let Some(at) = planned.trashed {
            (walker.send)(Step::Trash(planned.owner.session(&planned.birth.id), at))?;
        }
    }
    // A server that required tokens must not be open because its store was damaged.
    for token in found.tokens.values() {
        (walker.send)(Step::Token(token.clone()))?;
    }
    walker.note_what_is_missing();
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
    if pages.unreadable > 0 {
        report.notes.push(format!(
            "{} reads of the file failed; what should have been there was taken for nothing",
            pages.unreadable
        ));
    }
    send(Step::Done(report))
}

/// How many entries there are, copies aside.
fn distinct(found: &Found) -> u64 {
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

impl Walker<'_> {
    /// Brings over the attachments.
    fn attachments(&mut self) -> Result<(), Stopped> {
        for place in &self.found.blobs {
            let Some((owner, digest, Some(bytes))) = place.blob(self.pages) else {
                continue;
            };
            let owner = self.plan.owner(owner);
            if self.blobs.insert((owner.clone(), digest)) {
                self.report.blobs += 1;
                (self.send)(Step::Blob(owner, bytes))?;
            }
        }
        Ok(())
    }

    /// Notes what should have been there and was not found at all.
    fn note_what_is_missing(&mut self) {
        for (owner, digest) in self.named.difference(&self.blobs) {
            self.report.notes.push(format!(
                "attachment {digest} of {owner}, which entries name, is lost"
            ));
        }
        let mut unknown: Vec<_> = self.found.tails.iter().collect();
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
