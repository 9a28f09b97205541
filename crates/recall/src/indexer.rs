//! The one writer of an index.
//!
//! A passage is ranked by the words around it too, so that feeding one changes the
//! documents of up to two before it, and removing one those of up to two on each side.
//! Each document is written once a batch, whatever changed around it.
//!
//! Invariant: what is in the index is a function of what was fed, not of the batches it
//! came in; and a batch is in it as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use throughline_model::Seq;

use crate::analysis::AnalyzedPassage;
use crate::batch_overlay::BatchOverlay;
use crate::window::{REACH, Window};
use crate::{Batch, Document, IndexWriter, OwnedSession, Passage, RecallError};

/// So many sessions' last passages are remembered.
const MAX_CACHED_TAILS: usize = 4096;

/// The one writer of an index, for as long as it lives.
pub struct Indexer {
    writer: Box<dyn IndexWriter>,
    /// The last passages of sessions that were fed lately, as of the watermark.
    tails: HashMap<OwnedSession, Vec<Passage>>,
    watermark: u64,
}

impl Indexer {
    /// Feeds what is kept there.
    pub fn new(stock: impl IndexWriter + 'static) -> Self {
        Self {
            writer: Box::new(stock),
            tails: HashMap::new(),
            watermark: 0,
        }
    }

    /// Takes in a batch, durably; answers with the new watermark.
    ///
    /// A batch that does not begin where the index is says nothing about it, and nothing of
    /// it is taken in: somebody else was first. Should it fail, nothing of it is either.
    pub fn index_batch(&mut self, batch: Batch) -> Result<u64, RecallError> {
        match self.write_batch(batch) {
            Ok(upto) => {
                self.watermark = upto;
                Ok(upto)
            }
            Err(error) => {
                self.tails.clear();
                // The first error is the one to tell.
                self.writer.rollback();
                Err(error)
            }
        }
    }

    /// Rewrites what still holds what was removed, so that it is gone for good.
    ///
    /// Removed passages are never found; their words may stay on the disk until the files
    /// they are in are rewritten, which happens by itself only after some time.
    pub fn vacuum(&mut self) -> Result<(), RecallError> {
        self.writer.vacuum()
    }

    /// Waits until what goes on behind the last batch has ended, and lets go of the index.
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
            let place = (removal.owner, removal.session);
            self.tails.remove(&place);
            let around = self.writer.find_neighbors(&place, removal.seq)?;
            for (place, seq) in around {
                changes
                    .neighbors_of_removed
                    .entry(place)
                    .or_default()
                    .insert(seq);
            }
            match removal.seq {
                Some(seq) => {
                    changes.removed.insert((place, seq));
                }
                None => {
                    changes.removed_sessions.insert(place);
                }
            }
        }
        for passage in batch.passages {
            let place = (passage.owner.clone(), passage.session.clone());
            changes.removed.remove(&(place.clone(), passage.seq));
            changes
                .new
                .entry(place)
                .or_default()
                .insert(passage.seq, passage);
        }
        for (place, seq) in &changes.removed {
            self.writer.remove(place, Some(*seq))?;
        }
        for place in &changes.removed_sessions {
            self.writer.remove(place, None)?;
        }
        let mut tails = Vec::new();
        for place in changes.changed_sessions() {
            let tail = self.write_session(watermark, &changes, place)?;
            tails.push((place.clone(), tail));
        }
        self.writer.commit(&state.advance(upto, &batch.anchors))?;
        if self.tails.len() + tails.len() > MAX_CACHED_TAILS {
            self.tails.clear();
        }
        self.tails
            .extend(tails.into_iter().filter(|(_, tail)| !tail.is_empty()));
        Ok(upto)
    }

    /// Writes the documents of one session that change; answers with its last passages.
    fn write_session(
        &mut self,
        watermark: u64,
        changes: &BatchChanges,
        place: &OwnedSession,
    ) -> Result<Vec<Passage>, RecallError> {
        let shelf = BatchOverlay {
            writer: &*self.writer,
            new: &changes.new,
            removed: &changes.removed,
            removed_sessions: &changes.removed_sessions,
            tails: &self.tails,
        };
        let new = changes.new.get(place);
        let touched = changes.neighbors_of_removed.get(place);
        let seqs = || {
            let new = new.into_iter().flat_map(BTreeMap::keys);
            new.chain(touched.into_iter().flatten()).copied()
        };
        let (Some(first), Some(last)) = (seqs().min(), seqs().max()) else {
            return Ok(Vec::new());
        };
        // Twice the reach: the windows of those within reach of a change must be whole.
        let before = shelf.passages_before(place, first, 2 * REACH)?;
        let known = shelf.passages_from(place, first, last, 2 * REACH)?;
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
            one.passage.session == place.1 && dirty.contains(&one.passage.seq)
        };
        for (index, one) in passages.iter().enumerate() {
            let near =
                &passages[index.saturating_sub(REACH)..passages.len().min(index + REACH + 1)];
            if one.passage.session != place.1 || !near.iter().any(is_dirty) {
                continue;
            }
            let passage = &one.passage;
            let is_known =
                index < own || known.contains_key(&passage.seq) || passage.position <= watermark;
            let document = Document::new(&Window::at(&passages, index));
            self.writer.put(document, is_known)?;
        }
        // A tail is only known to be one if nothing more comes after it.
        if known.keys().filter(|seq| **seq > last).count() >= 2 * REACH {
            return Ok(Vec::new());
        }
        let tail = passages.into_iter().map(|one| one.passage);
        let tail: Vec<_> = tail.filter(|one| one.session == place.1).collect();
        let skip = tail.len().saturating_sub(2 * REACH);
        Ok(tail.into_iter().skip(skip).collect())
    }
}

impl std::fmt::Debug for Indexer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feeder")
            .field("watermark", &self.watermark)
            .finish_non_exhaustive()
    }
}

/// What a batch changes.
#[derive(Default)]
struct BatchChanges {
    new: BTreeMap<OwnedSession, BTreeMap<Seq, Passage>>,
    removed: HashSet<(OwnedSession, Seq)>,
    removed_sessions: HashSet<OwnedSession>,
    /// Passages that have something removed around them.
    neighbors_of_removed: BTreeMap<OwnedSession, BTreeSet<Seq>>,
}

impl BatchChanges {
    fn changed_sessions(&self) -> BTreeSet<&OwnedSession> {
        let touched = self
            .neighbors_of_removed
            .keys()
            .filter(|place| !self.removed_sessions.contains(place));
        self.new.keys().chain(touched).collect()
    }
}
