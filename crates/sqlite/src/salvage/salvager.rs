//! Salvages one log after another: verified entries are copied unchanged, lost ones become
//! placeholders, and the entries after those get new chain digests.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use throughline_model::{
    Body, Digest, Entry, EntryId, GENESIS, Lineage, Owner, Seq, SessionHeader, SessionRef,
    StoredEntry, Timestamp,
};

use super::lineage::truncate_ranges;
use super::page_reader::PageReader;
use super::plan::{LogRange, Plan, PlannedSession};
use super::scan::ScanResult;
use super::verify::Verdict;
use super::{Cancelled, Loss, SalvageReport, SalvageStep};

/// How much is sent at once: entries, and bytes of payload.
const CHUNK_ENTRIES: usize = 256;
const CHUNK_BYTES: usize = 8 * 1024 * 1024;
/// The payload of [`Body::Lost`].
const LOST_PAYLOAD: &str = r#"{"kind":"lost"}"#;

/// Walks everything that was found and sends what can be salvaged.
pub(super) struct Salvager<'a> {
    pub(super) pages: &'a mut PageReader,
    pub(super) found: &'a ScanResult,
    pub(super) plan: &'a Plan,
    pub(super) report: SalvageReport,
    pub(super) send: &'a mut dyn FnMut(SalvageStep) -> Result<(), Cancelled>,
    /// Digests of verified entries that forks start after, by session and number.
    pub(super) fork_point_digests: HashMap<(i64, u64), Option<Digest>>,
    /// The last entry up to which each session was salvaged without a gap.
    pub(super) intact_upto: HashMap<i64, u64>,
    /// The attachments salvaged, and those that entries name.
    pub(super) blobs: BTreeSet<(Owner, Digest)>,
    pub(super) referenced_blobs: BTreeSet<(Owner, Digest)>,
}

/// One log while it is being salvaged.
pub(super) struct SalvagedLog<'a> {
    pub(super) planned: &'a PlannedSession,
    /// The last digest in the damaged file, if known, and whether its entry was verified.
    pub(super) previous_digest: Option<Digest>,
    pub(super) previous_verified: bool,
    /// The head in the new store, with its digest and time.
    head: u64,
    digest: Digest,
    at: Timestamp,
    /// Whether everything so far is unchanged.
    is_intact: bool,
    chunk: Vec<StoredEntry>,
    bytes: usize,
    lost: BTreeMap<&'static str, Vec<(Seq, Seq)>>,
    unverified: Vec<(Seq, Seq)>,
}

impl Salvager<'_> {
    /// Salvages one session.
    pub(super) fn salvage_session(
        &mut self,
        pk: i64,
        planned: &PlannedSession,
    ) -> Result<(), Cancelled> {
        let mut log = SalvagedLog {
            planned,
            previous_digest: Some(GENESIS),
            previous_verified: true,
            head: 0,
            digest: GENESIS,
            at: planned.header.at,
            is_intact: true,
            chunk: Vec::new(),
            bytes: 0,
            lost: BTreeMap::new(),
            unverified: Vec::new(),
        };
        let (owner, header) = (planned.owner.clone(), planned.header.clone());
        if let Some((of, digest)) = self.find_origin(pk, planned) {
            log.head = planned.shared_seq();
            log.digest = digest;
            log.previous_digest = Some(digest);
            let at = Seq(log.head);
            (self.send)(SalvageStep::Fork { of, at, header })?;
        } else {
            (self.send)(SalvageStep::Adopt(owner, header, Vec::new(), 0))?;
        }
        self.intact_upto.insert(pk, log.head);
        let mut ranges = planned.inherited.clone();
        ranges.push(LogRange {
            session: pk,
            from: Seq(planned.shared_seq() + 1),
            to: Seq(planned.last_found),
        });
        for range in ranges {
            let first = range.from.0.max(log.head + 1);
            for seq in first..=range.to.0 {
                self.salvage_entry(range.session, Seq(seq), &mut log)?;
                if log.is_intact {
                    self.intact_upto.insert(pk, seq);
                }
            }
        }
        self.flush(&mut log)?;
        self.report_session(log);
        Ok(())
    }

    /// Returns the session that this one can be forked from in the new store, and the digest at
    /// the fork point.
    fn find_origin(&self, pk: i64, planned: &PlannedSession) -> Option<(SessionRef, Digest)> {
        let Lineage::Forked { session, at } = &planned.header.lineage else {
            return None;
        };
        let last = planned.inherited.last()?;
        if at.0 != planned.shared_seq() {
            return None;
        }
        let digest = (*self.fork_point_digests.get(&(last.session, last.to.0))?)?;
        let earlier = self.plan.sessions.range(..pk).rev();
        let (number, origin) = earlier
            .filter(|(_, other)| other.owner == planned.owner)
            .find(|(_, other)| other.header.id == *session)?;
        let mut whole = origin.inherited.clone();
        whole.push(LogRange {
            session: *number,
            from: Seq(origin.shared_seq() + 1),
            to: Seq(u64::MAX),
        });
        let same = truncate_ranges(whole, at.0) == planned.inherited;
        let intact = self
            .intact_upto
            .get(number)
            .is_some_and(|upto| *upto >= at.0);
        (same && intact).then(|| (origin.owner.session(&origin.header.id), digest))
    }

    fn salvage_entry(
        &mut self,
        base: i64,
        seq: Seq,
        log: &mut SalvagedLog<'_>,
    ) -> Result<(), Cancelled> {
        let verdict = self.verify_entry(base, seq, log);
        let trusted = matches!(verdict, Verdict::Verified(..));
        let (before, kept) = match verdict {
            Verdict::Verified(stored, entry) => (Some(stored.digest), Some((stored, entry))),
            Verdict::Unverified(stored, entry) => {
                self.report.unverified += 1;
                extend_ranges(&mut log.unverified, seq);
                (Some(stored.digest), Some((stored, entry)))
            }
            Verdict::Damaged(digest, why) => {
                extend_ranges(log.lost.entry(why).or_default(), seq);
                (digest, None)
            }
            Verdict::Missing => {
                extend_ranges(log.lost.entry("no longer in the file").or_default(), seq);
                (None, None)
            }
        };
        (log.previous_digest, log.previous_verified) = (before, trusted);
        log.is_intact &= trusted;
        if log.is_intact
            && let Some(joint) = self.fork_point_digests.get_mut(&(base, seq.0))
        {
            *joint = log.previous_digest;
        }
        let stored = match kept {
            Some((stored, entry)) => {
                self.report.entries += 1;
                self.note_attachments(&log.planned.owner, &entry);
                log.at = stored.at;
                if log.is_intact {
                    stored
                } else {
                    rechain(&log.digest, stored, &entry)
                }
            }
            None => lost_placeholder(&log.planned.header, seq, log.at, &log.digest),
        };
        log.head = seq.0;
        log.digest = stored.digest;
        log.bytes += stored.payload.len();
        log.chunk.push(stored);
        if log.chunk.len() >= CHUNK_ENTRIES || log.bytes >= CHUNK_BYTES {
            self.flush(log)?;
        }
        Ok(())
    }

    fn flush(&mut self, log: &mut SalvagedLog<'_>) -> Result<(), Cancelled> {
        log.bytes = 0;
        let chunk = std::mem::take(&mut log.chunk);
        if chunk.is_empty() {
            return Ok(());
        }
        let (owner, header) = (log.planned.owner.clone(), log.planned.header.clone());
        (self.send)(SalvageStep::Adopt(
            owner,
            header,
            chunk,
            self.report.entries,
        ))
    }

    fn note_attachments(&mut self, owner: &Owner, entry: &Entry) {
        if let Some(message) = entry.message() {
            let blobs = message.content.attachments().map(|a| a.blob);
            self.referenced_blobs
                .extend(blobs.map(|blob| (owner.clone(), blob)));
        }
    }

    /// Reports the outcome of a session.
    fn report_session(&mut self, log: SalvagedLog<'_>) {
        let (owner, id) = (&log.planned.owner, &log.planned.header.id);
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
        for (from, to) in log.unverified {
            self.report.notes.push(format!(
                "entries {from} to {to} of session {id} could not be verified, because the entries \
                 before them are lost"
            ));
        }
        self.report.sessions += 1;
    }
}

/// Re-chains an entry after another one; its content is unchanged.
fn rechain(before: &Digest, stored: StoredEntry, entry: &Entry) -> StoredEntry {
    let hash = match &entry.body {
        Body::Erased(tombstone) => tombstone.payload,
        _ => Digest::of(stored.payload.as_bytes()),
    };
    StoredEntry::from_payload(
        before,
        stored.seq,
        stored.id,
        stored.at,
        stored.payload,
        &hash,
    )
}

/// Makes the placeholder of a lost entry.
fn lost_placeholder(
    header: &SessionHeader,
    seq: Seq,
    at: Timestamp,
    before: &Digest,
) -> StoredEntry {
    let number = seq.0.to_le_bytes();
    let id = EntryId::derive(&[b"lost", header.id.as_str().as_bytes(), &number]);
    let hash = Digest::of(LOST_PAYLOAD.as_bytes());
    StoredEntry::from_payload(before, seq, id, at, LOST_PAYLOAD.to_owned(), &hash)
}

/// Adds a number to ranges that end before it.
fn extend_ranges(ranges: &mut Vec<(Seq, Seq)>, seq: Seq) {
    match ranges.last_mut() {
        Some((_, last)) if last.next() == seq => *last = seq,
        _ => ranges.push((seq, seq)),
    }
}
