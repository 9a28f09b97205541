//! The one writer of an index.
//!
//! A passage is ranked by the words around it too, so that feeding one changes the
//! documents of up to two before it, and removing one those of up to two on each side.
//! Each document is written once a batch, whatever changed around it.
//!
//! Invariant: what is in the index is a function of what was fed, not of the batches it
//! came in; and a batch is in it as a whole or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::time::Duration;

use tantivy::collector::DocSetCollector;
use tantivy::merge_policy::{LogMergePolicy, NoMergePolicy};
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexWriter, TantivyDocument, TantivyError, Term};
use throughline_model::Seq;

use crate::error::During as _;
use crate::index::{Commit, Index, View};
use crate::prepared::Prepared;
use crate::schema::{passage_key, session_key};
use crate::shelf::{Place, Shelf, kept};
use crate::window::{REACH, Window};
use crate::{Batch, Passage, RecallError};

/// What the engine may use before it writes a segment.
const MEMORY: usize = 64 << 20;

/// So many sessions' last passages are remembered.
const TAILS: usize = 4096;

/// Files with fewer passages than this are alike to whoever merges them.
const SMALL: u32 = 200;

/// How often a merge that is under way is waited for.
const MERGE_TRIES: u32 = 20_000;

/// The one writer of an index, for as long as it lives.
pub struct Feeder {
    index: Index,
    writer: IndexWriter,
    tails: HashMap<Place, Vec<Passage>>,
    /// Held until the feeder is dropped.
    _lock: File,
}

impl Feeder {
    pub(crate) fn new(index: Index, lock: File) -> Result<Self, RecallError> {
        // One thread: the order of documents is then the order they were fed in.
        let writer = index
            .engine()
            .writer_with_num_threads(1, MEMORY)
            .during("opening the index for writing")?;
        writer.set_merge_policy(Box::new(merge_policy()));
        Ok(Self {
            index,
            writer,
            tails: HashMap::new(),
            _lock: lock,
        })
    }

    /// Takes in a batch, durably; answers with the new watermark.
    ///
    /// What is fed again changes nothing. Should it fail, nothing of it is in the index.
    pub fn feed(&mut self, batch: Batch) -> Result<u64, RecallError> {
        match self.write(batch) {
            Ok(upto) => Ok(upto),
            Err(error) => {
                self.tails.clear();
                // The first error is the one to tell.
                let _ = self.writer.rollback();
                Err(error)
            }
        }
    }

    /// Rewrites the files that still hold what was removed, so that it is gone for good.
    ///
    /// Removed passages are never found; their words stay on the disk until the files
    /// they are in are rewritten, which happens by itself only after some time.
    pub fn scrub(&mut self) -> Result<(), RecallError> {
        let during = "rewriting its files";
        self.writer.set_merge_policy(Box::new(NoMergePolicy));
        let scrubbed = self.rewrite().during(during);
        self.writer.set_merge_policy(Box::new(merge_policy()));
        scrubbed?;
        self.writer.garbage_collect_files().wait().during(during)?;
        self.index.forget_encoded()
    }

    /// Waits until files that are being merged are, and lets go of the index.
    pub fn finish(self) -> Result<(), RecallError> {
        self.writer
            .wait_merging_threads()
            .during("merging its files")
    }

    fn rewrite(&mut self) -> tantivy::Result<()> {
        let mut tries = 0;
        loop {
            let metas = self.index.engine().searchable_segment_metas()?;
            let Some(meta) = metas.iter().find(|meta| meta.num_deleted_docs() > 0) else {
                return Ok(());
            };
            match self.writer.merge(&[meta.id()]).wait() {
                // It is being merged already: what comes of that is looked at again.
                Err(TantivyError::InvalidArgument(_)) if tries < MERGE_TRIES => {
                    std::thread::sleep(Duration::from_millis(5));
                    tries += 1;
                }
                done => drop(done?),
            }
        }
    }

    fn write(&mut self, batch: Batch) -> Result<u64, RecallError> {
        let view = self.index.view()?;
        let upto = batch.upto.max(view.watermark);
        let mut changes = Changes::default();
        for removal in batch.removed {
            let place = (removal.owner, removal.session);
            self.tails.remove(&place);
            match removal.seq {
                Some(seq) => {
                    changes.touch_around(&view, &passage_key(&place.0, &place.1, seq))?;
                    changes.removed.insert((place, seq));
                }
                None => {
                    changes.touch_around(&view, &session_key(&place.0, &place.1))?;
                    changes.removed_whole.insert(place);
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
            let term = view.fields.key_term(&place.0, &place.1, *seq);
            self.writer.delete_term(term);
        }
        for place in &changes.removed_whole {
            let term = view.fields.session_term(&place.0, &place.1);
            self.writer.delete_term(term);
        }
        let mut tails = Vec::new();
        for place in changes.places() {
            tails.push((place.clone(), self.write_session(&view, &changes, place)?));
        }
        self.commit(upto)?;
        if self.tails.len() + tails.len() > TAILS {
            self.tails.clear();
        }
        self.tails
            .extend(tails.into_iter().filter(|(_, tail)| !tail.is_empty()));
        Ok(upto)
    }

    /// Writes the documents of one session that change; answers with its last passages.
    fn write_session(
        &self,
        view: &View,
        changes: &Changes,
        place: &Place,
    ) -> Result<Vec<Passage>, RecallError> {
        let shelf = Shelf {
            view,
            new: &changes.new,
            removed: &changes.removed,
            removed_whole: &changes.removed_whole,
            tails: &self.tails,
        };
        let new = changes.new.get(place);
        let touched = changes.touched.get(place);
        let seqs = || {
            let new = new.into_iter().flat_map(BTreeMap::keys);
            new.chain(touched.into_iter().flatten()).copied()
        };
        let (Some(first), Some(last)) = (seqs().min(), seqs().max()) else {
            return Ok(Vec::new());
        };
        // Twice the reach: the windows of those within reach of a change must be whole.
        let before = shelf.before(place, first, 2 * REACH)?;
        let known = shelf.from(place, first, last, 2 * REACH)?;
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
        let passages: Vec<Prepared> = before
            .into_iter()
            .chain(region.into_values())
            .map(Prepared::new)
            .collect();
        let is_dirty =
            |one: &Prepared| one.passage.session == place.1 && dirty.contains(&one.passage.seq);
        for (index, one) in passages.iter().enumerate() {
            let near =
                &passages[index.saturating_sub(REACH)..passages.len().min(index + REACH + 1)];
            if one.passage.session != place.1 || !near.iter().any(is_dirty) {
                continue;
            }
            let passage = &one.passage;
            let is_known = index < own
                || known.contains_key(&passage.seq)
                || passage.position <= view.watermark;
            if is_known {
                let term = view
                    .fields
                    .key_term(&passage.owner, &passage.session, passage.seq);
                self.writer.delete_term(term);
            }
            let document: TantivyDocument = view.fields.document(&Window::at(&passages, index))?;
            self.writer
                .add_document(document)
                .during("writing a passage")?;
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

    fn commit(&mut self, upto: u64) -> Result<(), RecallError> {
        let payload = serde_json::to_string(&Commit { upto })?;
        let mut commit = self.writer.prepare_commit().during("writing a batch")?;
        commit.set_payload(&payload);
        commit.commit().during("committing a batch")?;
        Ok(())
    }
}

impl std::fmt::Debug for Feeder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Feeder").field(&self.index).finish()
    }
}

/// When files are merged: also when much of them has been written anew elsewhere. Small ones
/// are merged among themselves, so that feeding a single entry hardly ever rewrites a
/// large one.
fn merge_policy() -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_min_layer_size(SMALL);
    policy.set_del_docs_ratio_before_merge(0.4);
    policy
}

/// What a batch changes.
#[derive(Default)]
struct Changes {
    new: BTreeMap<Place, BTreeMap<Seq, Passage>>,
    removed: HashSet<(Place, Seq)>,
    removed_whole: HashSet<Place>,
    /// Passages that have something removed around them.
    touched: BTreeMap<Place, BTreeSet<Seq>>,
}

impl Changes {
    /// Notes the passages whose documents have the words of another.
    fn touch_around(&mut self, view: &View, key: &str) -> Result<(), RecallError> {
        let during = "finding what is around a passage";
        let term = Term::from_field_text(view.fields.around, key);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        let docs = view
            .searcher
            .search(&query, &DocSetCollector)
            .during(during)?;
        for address in docs {
            let passage = kept(view, address)?.passage;
            let place = (passage.owner, passage.session);
            self.touched.entry(place).or_default().insert(passage.seq);
        }
        Ok(())
    }

    fn places(&self) -> BTreeSet<&Place> {
        let touched = self
            .touched
            .keys()
            .filter(|place| !self.removed_whole.contains(place));
        self.new.keys().chain(touched).collect()
    }
}
