//! Writes passages to the files of the full-text engine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::ops::{Bound, Range};
use std::time::Duration;

use tantivy::collector::DocSetCollector;
use tantivy::merge_policy::{LogMergePolicy, NoMergePolicy};
use tantivy::query::{BooleanQuery, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, TantivyError, Term};
use throughline_model::Seq;

use super::folder_reader::read_stored;
use super::schema::{passage_key, session_key};
use super::{CommitView, FolderIndex, leftovers};
use crate::error::ErrorContext as _;
use crate::{Document, IndexState, IndexWriter, OwnedSession, Passage, RecallError};

const READING: &str = "reading indexed passages";
/// The number of entries in the first lookup span, and the factor by which further spans grow.
const FIRST_SPAN: u64 = 64;
const SPAN_GROWTH: u64 = 32;

/// The memory that the engine may use before it writes a segment.
const WRITER_MEMORY_BYTES: usize = 64 << 20;

/// Segments with fewer passages than this count as the same size in the merge policy.
const MIN_LAYER_DOCS: u32 = 200;

/// How often to retry while a segment is being merged.
const MAX_MERGE_TRIES: u32 = 20_000;

/// The writer, for as long as the lock is held.
pub(super) struct FolderIndexWriter {
    index: FolderIndex,
    writer: tantivy::IndexWriter,
    /// The commit at the beginning of the batch.
    view: CommitView,
    _lock: File,
}

impl FolderIndexWriter {
    pub(super) fn new(index: FolderIndex, lock: File) -> Result<Self, RecallError> {
        // One thread, so that documents keep the order in which they were added.
        let writer = index
            .engine()
            .writer_with_num_threads(1, WRITER_MEMORY_BYTES)
            .during("opening the index for writing")?;
        writer.set_merge_policy(Box::new(merge_policy()));
        Ok(Self {
            view: index.latest_view()?,
            index,
            writer,
            _lock: lock,
        })
    }

    fn rewrite_segments_with_deletes(&mut self) -> tantivy::Result<()> {
        let mut tries = 0;
        loop {
            let metas = self.index.engine().searchable_segment_metas()?;
            let Some(meta) = metas.iter().find(|meta| meta.num_deleted_docs() > 0) else {
                return Ok(());
            };
            match self.writer.merge(&[meta.id()]).wait() {
                // The segment is being merged already: check the result again.
                Err(TantivyError::InvalidArgument(_)) if tries < MAX_MERGE_TRIES => {
                    std::thread::sleep(Duration::from_millis(5));
                    tries += 1;
                }
                done => drop(done?),
            }
        }
    }

    /// Returns the addresses of a session's passages within a range, unordered.
    fn find_addresses(
        &self,
        session: &Term,
        range: Range<Seq>,
    ) -> Result<Vec<(Seq, DocAddress)>, RecallError> {
        let fields = &self.view.fields;
        let bound = |seq: Seq| Term::from_field_u64(fields.seq, seq.0);
        let seqs = RangeQuery::new(
            Bound::Included(bound(range.start)),
            Bound::Excluded(bound(range.end)),
        );
        let session = TermQuery::new(session.clone(), IndexRecordOption::Basic);
        let query = BooleanQuery::intersection(vec![Box::new(session), Box::new(seqs)]);
        let searcher = &self.view.searcher;
        let docs = searcher.search(&query, &DocSetCollector).during(READING)?;
        let mut columns = HashMap::new();
        let mut found = Vec::with_capacity(docs.len());
        for address in docs {
            let column = match columns.entry(address.segment_ord) {
                Entry::Occupied(column) => column.into_mut(),
                Entry::Vacant(free) => {
                    let segment = searcher.segment_reader(address.segment_ord);
                    free.insert(segment.fast_fields().u64("seq").during(READING)?)
                }
            };
            let seq = Seq(column.first(address.doc_id).unwrap_or_default());
            found.push((seq, address));
        }
        Ok(found)
    }
}

impl IndexWriter for FolderIndexWriter {
    fn begin(&mut self) -> Result<IndexState, RecallError> {
        self.view = self.index.latest_view()?;
        Ok(self.view.state.clone())
    }

    fn find_neighbors(
        &mut self,
        owned: &OwnedSession,
        seq: Option<Seq>,
    ) -> Result<Vec<(OwnedSession, Seq)>, RecallError> {
        let during = "finding the neighbors of a passage";
        let key = match seq {
            Some(seq) => passage_key(&owned.0, &owned.1, seq),
            None => session_key(&owned.0, &owned.1),
        };
        let term = Term::from_field_text(self.view.fields.neighbors, &key);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        let docs = self.view.searcher.search(&query, &DocSetCollector);
        let touched = docs.during(during)?.into_iter().map(|address| {
            let passage = read_stored(&self.view, address)?.passage;
            Ok(((passage.owner, passage.session), passage.seq))
        });
        touched.collect()
    }

    /// Searches near that end of the range first, then in ever wider spans: entries are
    /// numbered densely, so the wanted passages are rarely far away.
    fn passages(
        &self,
        owned: &OwnedSession,
        range: Range<Seq>,
        count: usize,
        last: bool,
    ) -> Result<Vec<Passage>, RecallError> {
        let session = self.view.fields.session_term(&owned.0, &owned.1);
        let of_session = self.view.searcher.doc_freq(&session);
        if of_session.during(READING)? == 0 {
            return Ok(Vec::new());
        }
        let (Range { start, end }, mut reach) = (range, FIRST_SPAN);
        let mut found = loop {
            let near = if last {
                start.max(Seq(end.0.saturating_sub(reach)))..end
            } else {
                start..end.min(Seq(start.0.saturating_add(reach)))
            };
            let whole = near == (start..end);
            let found = self.find_addresses(&session, near)?;
            if whole || found.len() >= count {
                break found;
            }
            reach = reach.saturating_mul(SPAN_GROWTH);
        };
        found.sort_by_key(|(seq, _)| *seq);
        if last {
            found.drain(..found.len().saturating_sub(count));
        } else {
            found.truncate(count);
        }
        let passages = found
            .into_iter()
            .map(|(_, address)| read_stored(&self.view, address).map(|stored| stored.passage));
        passages.collect()
    }

    fn remove(&mut self, owned: &OwnedSession, seq: Option<Seq>) -> Result<(), RecallError> {
        let fields = &self.view.fields;
        self.writer.delete_term(match seq {
            Some(seq) => fields.passage_term(&owned.0, &owned.1, seq),
            None => fields.session_term(&owned.0, &owned.1),
        });
        Ok(())
    }

    fn put(&mut self, document: Document, is_known: bool) -> Result<(), RecallError> {
        let passage = &document.stored.passage;
        let fields = &self.view.fields;
        if is_known {
            let term = fields.passage_term(&passage.owner, &passage.session, passage.seq);
            self.writer.delete_term(term);
        }
        self.writer
            .add_document(fields.build_tantivy(&document)?)
            .during("writing a passage")?;
        Ok(())
    }

    fn commit(&mut self, state: &IndexState) -> Result<(), RecallError> {
        let payload = serde_json::to_string(state)?;
        let mut commit = self.writer.prepare_commit().during("writing a batch")?;
        commit.set_payload(&payload);
        commit.commit().during("committing a batch")?;
        Ok(())
    }

    fn rollback(&mut self) {
        // The original error is already being returned.
        let _ = self.writer.rollback();
    }

    fn vacuum(&mut self) -> Result<(), RecallError> {
        let during = "rewriting the index files";
        self.writer.set_merge_policy(Box::new(NoMergePolicy));
        let scrubbed = self.rewrite_segments_with_deletes().during(during);
        self.writer.set_merge_policy(Box::new(merge_policy()));
        scrubbed?;
        self.writer.garbage_collect_files().wait().during(during)?;
        self.index.0.encodings.delete_all()
    }

    fn finish(self: Box<Self>) -> Result<(), RecallError> {
        let Self {
            index,
            writer,
            _lock,
            ..
        } = *self;
        writer
            .wait_merging_threads()
            .during("merging the index files")?;
        // The engine forgets merged files if a power cut removed them from its list.
        leftovers::remove(&index.0.folder, &index.0.engine)
    }
}

/// Returns the merge policy: segments with many deleted documents are merged, too. Small
/// segments are merged among themselves, so that adding a single entry rarely rewrites a large
/// one.
fn merge_policy() -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_min_layer_size(MIN_LAYER_DOCS);
    policy.set_del_docs_ratio_before_merge(0.4);
    policy
}
