//! One log after the other: what verifies is brought over as it is, what is gone gets
//! a placeholder, and what comes after is chained anew.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use throughline_model::{
    Birth, Body, Digest, Entry, EntryId, GENESIS, Lineage, Owner, Seq, SessionRef, StoredEntry,
    Timestamp,
};

use super::judge::Verdict;
use super::lineage::cut;
use super::pages::Pages;
use super::plan::{Plan, Planned, Stretch};
use super::scan::Found;
use super::{Loss, Salvaged, Step, Stopped};

/// How much is sent over at once: entries, and bytes of them.
const CHUNK: usize = 256;
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// The payload of [`Body::Lost`].
const LOST: &str = r#"{"kind":"lost"}"#;

/// Goes through everything found and sends what can be kept.
pub(super) struct Walker<'a> {
    pub(super) pages: &'a mut Pages,
    pub(super) found: &'a Found,
    pub(super) plan: &'a Plan,
    pub(super) report: Salvaged,
    pub(super) send: &'a mut dyn FnMut(Step) -> Result<(), Stopped>,
    /// Digests at which others begin, by session and number, of entries that verify.
    pub(super) joints: HashMap<(i64, u64), Option<Digest>>,
    /// How far each session is brought over with nothing missing.
    pub(super) intact: HashMap<i64, u64>,
    /// The attachments that are brought over, and those that entries name.
    pub(super) blobs: BTreeSet<(Owner, Digest)>,
    pub(super) named: BTreeSet<(Owner, Digest)>,
}

/// One log as it is being brought over.
pub(super) struct Log<'a> {
    pub(super) planned: &'a Planned,
    /// The last digest in the damaged file, if known, and whether its entry verified.
    pub(super) before: Option<Digest>,
    pub(super) trusted: bool,
    /// The head in the new store, its digest and its time.
    head: u64,
    digest: Digest,
    at: Timestamp,
    /// Whether all so far is as it was.
    unbroken: bool,
    chunk: Vec<StoredEntry>,
    bytes: usize,
    lost: BTreeMap<&'static str, Vec<(Seq, Seq)>>,
    unsure: Vec<(Seq, Seq)>,
}

impl Walker<'_> {
    /// Brings over one session.
    pub(super) fn session(&mut self, pk: i64, planned: &Planned) -> Result<(), Stopped> {
        let mut log = Log {
            planned,
            before: Some(GENESIS),
            trusted: true,
            head: 0,
            digest: GENESIS,
            at: planned.birth.at,
            unbroken: true,
            chunk: Vec::new(),
            bytes: 0,
            lost: BTreeMap::new(),
            unsure: Vec::new(),
        };
        let (owner, birth) = (planned.owner.clone(), planned.birth.clone());
        if let Some((of, digest)) = self.origin(pk, planned) {
            log.head = planned.shared();
            log.digest = digest;
            log.before = Some(digest);
            let at = Seq(log.head);
            (self.send)(Step::Fork { of, at, birth })?;
        } else {
            (self.send)(Step::Adopt(owner, birth, Vec::new(), 0))?;
        }
        self.intact.insert(pk, log.head);
        let mut stretches = planned.inherited.clone();
        stretches.push(Stretch {
            session: pk,
            from: Seq(planned.shared() + 1),
            to: Seq(planned.last),
        });
        for stretch in stretches {
            let first = stretch.from.0.max(log.head + 1);
            for seq in first..=stretch.to.0 {
                self.entry(stretch.session, Seq(seq), &mut log)?;
                if log.unbroken {
                    self.intact.insert(pk, seq);
                }
            }
        }
        self.flush(&mut log)?;
        self.close(log);
        Ok(())
    }

    /// The session that this one can be forked from again, and the digest there.
    fn origin(&self, pk: i64, planned: &Planned) -> Option<(SessionRef, Digest)> {
        let Lineage::Forked { session, at } = &planned.birth.lineage else {
            return None;
        };
        let last = planned.inherited.last()?;
        if at.0 != planned.shared() {
            return None;
        }
        let digest = (*self.joints.get(&(last.session, last.to.0))?)?;
        let earlier = self.plan.sessions.range(..pk).rev();
        let (number, origin) = earlier
            .filter(|(_, other)| other.owner == planned.owner)
            .find(|(_, other)| other.birth.id == *session)?;
        let mut whole = origin.inherited.clone();
        whole.push(Stretch {
            session: *number,
            from: Seq(origin.shared() + 1),
            to: Seq(u64::MAX),
        });
        let same = cut(whole, at.0) == planned.inherited;
        let intact = self.intact.get(number).is_some_and(|upto| *upto >= at.0);
        (same && intact).then(|| (origin.owner.session(&origin.birth.id), digest))
    }

    fn entry(&mut self, base: i64, seq: Seq, log: &mut Log<'_>) -> Result<(), Stopped> {
        let verdict = self.judge(base, seq, log);
        let trusted = matches!(verdict, Verdict::Sound(..));
        let (before, kept) = match verdict {
            Verdict::Sound(stored, entry) => (Some(stored.digest), Some((stored, entry))),
            Verdict::Unsure(stored, entry) => {
                self.report.unverified += 1;
                extend(&mut log.unsure, seq);
                (Some(stored.digest), Some((stored, entry)))
            }
            Verdict::Damaged(digest, why) => {
                extend(log.lost.entry(why).or_default(), seq);
                (digest, None)
            }
            Verdict::Missing => {
                extend(log.lost.entry("not in the file any more").or_default(), seq);
                (None, None)
            }
        };
        (log.before, log.trusted) = (before, trusted);
        log.unbroken &= trusted;
        if log.unbroken
            && let Some(joint) = self.joints.get_mut(&(base, seq.0))
        {
            *joint = log.before;
        }
        let stored = match kept {
            Some((stored, entry)) => {
                self.report.entries += 1;
                self.name_attachments(&log.planned.owner, &entry);
                log.at = stored.at;
                if log.unbroken {
                    stored
                } else {
                    rechained(&log.digest, stored, &entry)
                }
            }
            None => placeholder(&log.planned.birth, seq, log.at, &log.digest),
        };
        log.head = seq.0;
        log.digest = stored.digest;
        log.bytes += stored.payload.len();
        log.chunk.push(stored);
        if log.chunk.len() >= CHUNK || log.bytes >= CHUNK_BYTES {
            self.flush(log)?;
        }
        Ok(())
    }

    fn flush(&mut self, log: &mut Log<'_>) -> Result<(), Stopped> {
        log.bytes = 0;
        let chunk = std::mem::take(&mut log.chunk);
        if chunk.is_empty() {
            return Ok(());
        }
        let (owner, birth) = (log.planned.owner.clone(), log.planned.birth.clone());
        (self.send)(Step::Adopt(owner, birth, chunk, self.report.entries))
    }

    fn name_attachments(&mut self, owner: &Owner, entry: &Entry) {
        if let Some(message) = entry.message() {
            let blobs = message.content.attachments().map(|a| a.blob);
            self.named.extend(blobs.map(|blob| (owner.clone(), blob)));
        }
    }

    /// Reports what became of a session.
    fn close(&mut self, log: Log<'_>) {
        let (owner, id) = (&log.planned.owner, &log.planned.birth.id);
        let mut lost = |entries, why: &str| {
            self.report.lost.push(Loss {
                owner: owner.clone(),
                session: id.clone(),
                entries,
                why: why.to_owned(),
            });
        };
        for (why, entries) in log.lost {
            lost(entries, why);
        }
        if log.planned.head > log.head {
            let tail = (Seq(log.head + 1), Seq(log.planned.head));
            lost(vec![tail], "missing from the end");
        }
        for (from, to) in log.unsure {
            self.report.notes.push(format!(
                "entries {from} to {to} of session {id} could not be verified, since what came \
                 before them is lost"
            ));
        }
        self.report.sessions += 1;
    }
}

/// The same entry after another; its content is untouched.
fn rechained(before: &Digest, stored: StoredEntry, entry: &Entry) -> StoredEntry {
    let hash = match &entry.body {
        Body::Erased(tombstone) => tombstone.payload,
        _ => Digest::of(stored.payload.as_bytes()),
    };
    StoredEntry::chained(
        before,
        stored.seq,
        stored.id,
        stored.at,
        stored.payload,
        &hash,
    )
}

/// What stands for an entry that is lost.
fn placeholder(birth: &Birth, seq: Seq, at: Timestamp, before: &Digest) -> StoredEntry {
    let number = seq.0.to_le_bytes();
    let id = EntryId::derived(&[b"lost", birth.id.as_str().as_bytes(), &number]);
    let hash = Digest::of(LOST.as_bytes());
    StoredEntry::chained(before, seq, id, at, LOST.to_owned(), &hash)
}

/// Adds a number to ranges that end before it.
fn extend(ranges: &mut Vec<(Seq, Seq)>, seq: Seq) {
    match ranges.last_mut() {
        Some((_, last)) if last.next() == seq => *last = seq,
        _ => ranges.push((seq, seq)),
    }
}
