//! Writes batches of entries to an index, as its only writer.
//!
//! A passage is also ranked by the words of its neighbors, so adding one changes the documents
//! of up to two passages before it, and removing one those of up to two on each side. Each
//! document is written once per batch, whatever changed around it.
//!
//! Invariants: the content of the index depends on the entries, not on how they were split
//! into batches; and a batch is applied as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use throughline_model::Seq;

use crate::analysis::AnalyzedPassage;
use crate::batch_overlay::BatchOverlay;
use crate::window::{REACH, Window};
use crate::{Batch, Document, IndexWriter, OwnedSession, Passage, RecallError};

/// The number of sessions whose last passages are cached.
const MAX_CACHED_TAILS: usize = 4096;

/// The only writer of an index, for as long as it lives.
pub struct Indexer {
    writer: Box<dyn IndexWriter>,
    /// The last passages of recently indexed sessions, as of the watermark.
    tails: HashMap<OwnedSession, Vec<Passage>>,
    watermark: u64,
}

impl Indexer {
    /// Creates an indexer that writes to a backend.
    pub fn new(writer: impl IndexWriter + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            tails: HashMap::new(),
            watermark: 0,
        }
    }

    /// Indexes a batch durably; returns the new watermark.
    ///
    /// A batch that does not begin at the index's watermark is ignored: another indexer was
    /// faster. A batch that fails leaves the index unchanged.
    pub fn index_batch(&mut self, batch: Batch) -> Result<u64, RecallError> {
        match self.write_batch(batch) {
            Ok(upto) => {
                self.watermark = upto;
                Ok(upto)
            }
            Err(error) => {
                self.tails.clear();
                // Return the first error, not one from the rollback.
                self.writer.rollback();
                Err(error)
            }
        }
    }

    /// Rewrites the files that still contain removed passages, so that they are erased from
    /// the disk.
    ///
    /// Removed passages are never found, but their words stay on the disk until the files that
    /// contain them are rewritten, which otherwise happens only after some time.
    pub fn vacuum(&mut self) -> Result<(), RecallError> {
        self.writer.vacuum()
    }

    /// Waits for background work after the last batch, and releases the index.
    pub fn finish(self) -> Result<(), RecallError> {
        self.writer.finish()
    }

    fn write_batch(&mut self, batch: Batch) -> Result<u64, RecallError> {
        let state = self.writer.begin()?;
        let watermark = state.upto;
        if watermark != self.watermark {
            self.tails.clear();
        }
        if batch.after != watermark {
            self.writer.rollback();
            return Ok(watermark);
        }
        let upto = batch.upto.max(watermark);
        let mut changes = BatchChanges::default();
        for removal in batch.removed {
            let key = (removal.owner, removal.session);
            self.tails.remove(&key);
            let around = self.writer.find_neighbors(&key, removal.seq)?;
            for (key, seq) in around {
                changes
                    .neighbors_of_removed
                    .entry(key)
                    .or_default()
                    .insert(seq);
            }
            match removal.seq {
                Some(seq) => {
                    changes.removed.insert((key, seq));
                }
                None => {
                    changes.removed_sessions.insert(key);
                }
            }
        }
        for passage in batch.passages {
            let key = (passage.owner.clone(), passage.session.clone());
            changes.removed.remove(&(key.clone(), passage.seq));
            changes
                .new
                .entry(key)
                .or_default()
                .insert(passage.seq, passage);
        }
        for (key, seq) in &changes.removed {
            self.writer.remove(key, Some(*seq))?;
        }
        for key in &changes.removed_sessions {
            self.writer.remove(key, None)?;
        }
        let mut tails = Vec::new();
        for key in changes.changed_sessions() {
            let tail = self.write_session(watermark, &changes, key)?;
            tails.push((key.clone(), tail));
        }
        self.writer.commit(&state.advance(upto, &batch.anchors))?;
        if self.tails.len() + tails.len() > MAX_CACHED_TAILS {
            self.tails.clear();
        }
        self.tails
            .extend(tails.into_iter().filter(|(_, tail)| !tail.is_empty()));
        Ok(upto)
    }

    /// Writes the changed documents of one session; returns its last passages.
    fn write_session(
        &mut self,
        watermark: u64,
        changes: &BatchChanges,
        key: &OwnedSession,
    ) -> Result<Vec<Passage>, RecallError> {
        let overlay = BatchOverlay {
            writer: &*self.writer,
            new: &changes.new,
            removed: &changes.removed,
            removed_sessions: &changes.removed_sessions,
            tails: &self.tails,
        };
        let new = changes.new.get(key);
        let touched = changes.neighbors_of_removed.get(key);
        let seqs = || {
            let new = new.into_iter().flat_map(BTreeMap::keys);
            new.chain(touched.into_iter().flatten()).copied()
        };
        let (Some(first), Some(last)) = (seqs().min(), seqs().max()) else {
            return Ok(Vec::new());
        };
        // Twice the reach: the windows of passages within reach of a change must be complete.
        let before = overlay.passages_before(key, first, 2 * REACH)?;
        let known = overlay.passages_from(key, first, last, 2 * REACH)?;
        let mut region: BTreeMap<Seq, Passage> =
            known.iter().map(|one| (one.seq, one.clone())).collect();
        let known: HashMap<Seq, Passage> = known.into_iter().map(|one| (one.seq, one)).collect();
        let mut dirty: BTreeSet<Seq> = touched.cloned().unwrap_or_default();
        for (seq, passage) in new.into_iter().flatten() {
            if known.get(seq) != Some(passage) {
                dirty.insert(*seq);
                region.insert(*seq, passage.clone());
            }
        }
        let own = before.len();
        let passages: Vec<AnalyzedPassage> = before
            .into_iter()
            .chain(region.into_values())
            .map(AnalyzedPassage::new)
            .collect();
        let is_dirty = |one: &AnalyzedPassage| {
            one.passage.session == key.1 && dirty.contains(&one.passage.seq)
        };
        for (index, one) in passages.iter().enumerate() {
            let near =
                &passages[index.saturating_sub(REACH)..passages.len().min(index + REACH + 1)];
            if one.passage.session != key.1 || !near.iter().any(is_dirty) {
                continue;
            }
            let passage = &one.passage;
            let is_known =
                index < own || known.contains_key(&passage.seq) || passage.position <= watermark;
            let document = Document::new(&Window::at(&passages, index));
            self.writer.put(document, is_known)?;
        }
        // These are the session's last passages only if nothing more follows them.
        if known.keys().filter(|seq| **seq > last).count() >= 2 * REACH {
            return Ok(Vec::new());
        }
        let tail = passages.into_iter().map(|one| one.passage);
        let tail: Vec<_> = tail.filter(|one| one.session == key.1).collect();
        let skip = tail.len().saturating_sub(2 * REACH);
        Ok(tail.into_iter().skip(skip).collect())
    }
}

impl std::fmt::Debug for Indexer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexer")
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}

/// The changes that a batch makes, by session.
#[derive(Default)]
struct BatchChanges {
    new: BTreeMap<OwnedSession, BTreeMap<Seq, Passage>>,
    removed: HashSet<(OwnedSession, Seq)>,
    removed_sessions: HashSet<OwnedSession>,
    /// Passages whose context contained a removed passage.
    neighbors_of_removed: BTreeMap<OwnedSession, BTreeSet<Seq>>,
}

impl BatchChanges {
    fn changed_sessions(&self) -> BTreeSet<&OwnedSession> {
        let touched = self
            .neighbors_of_removed
            .keys()
            .filter(|key| !self.removed_sessions.contains(key));
        self.new.keys().chain(touched).collect()
    }
}
