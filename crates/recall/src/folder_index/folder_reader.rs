//! Reads one commit of an index folder.

use tantivy::schema::Value as _;
use tantivy::{DocAddress, TantivyDocument, Term};

use super::CommitView;
use super::bm25::Bm25Search;
use super::doc_filter::DocFilter;
use super::term_lookup::{complete_prefix, correct_spelling};
use super::vector_scan::{nearest_vectors, similarity};
use crate::error::ErrorContext as _;
use crate::{DocFrequencies, IndexReader, Passage, PassageId, RecallError, StoredPassage};

const READING: &str = "reading a passage";
/// Documents are read from front to back, so one cached block is enough.
const CACHED_BLOCKS: usize = 1;

/// A reader of one commit, restricted to a scope.
pub(super) struct FolderIndexReader {
    pub(super) view: CommitView,
    pub(super) filter: DocFilter,
}

impl IndexReader for FolderIndexReader {
    fn watermark(&self) -> u64 {
        self.view.state.upto
    }

    fn doc_frequencies(&self, terms: &[&str]) -> Result<DocFrequencies, RecallError> {
        let counts = terms.iter().map(|term| {
            let term = Term::from_field_text(self.view.fields.own_terms, term);
            let counted = self.view.searcher.doc_freq(&term);
            counted.during("counting a term")
        });
        Ok(DocFrequencies {
            counts: counts.collect::<Result<_, _>>()?,
            total: self.view.searcher.num_docs(),
        })
    }

    fn complete_prefix(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError> {
        complete_prefix(&self.view, prefix, count)
    }

    fn correct_spelling(&self, term: &str) -> Result<Option<String>, RecallError> {
        correct_spelling(&self.view, &self.filter, term)
    }

    fn search_text(
        &self,
        terms: &[&str],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError> {
        match Bm25Search::new(&self.view, terms)? {
            Some(search) => search.top_k(&self.filter, count),
            None => Ok(Vec::new()),
        }
    }

    fn text_scores(&self, terms: &[&str], at: &[PassageId]) -> Result<Vec<f32>, RecallError> {
        let addresses: Vec<DocAddress> = at.iter().map(|at| to_address(*at)).collect();
        match Bm25Search::new(&self.view, terms)? {
            Some(search) => search.scores(&addresses),
            None => Ok(vec![0.0; at.len()]),
        }
    }

    fn nearest_vectors(
        &self,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError> {
        Ok(nearest_vectors(&self.view, &self.filter, vector, count))
    }

    fn read_passages(
        &self,
        at: &[PassageId],
        vector: &[f32],
    ) -> Result<Vec<(StoredPassage, f32)>, RecallError> {
        let one = |at: &PassageId| {
            let stored = read_stored(&self.view, to_address(*at))?;
            Ok((stored, similarity(&self.view, *at, vector)))
        };
        at.iter().map(one).collect()
    }
}

/// Packs the segment and document number of an address into an id.
pub(super) fn to_passage_id(address: DocAddress) -> PassageId {
    PassageId(u64::from(address.segment_ord) << 32 | u64::from(address.doc_id))
}

#[expect(clippy::cast_possible_truncation, reason = "two halves")]
pub(super) fn to_address(PassageId(at): PassageId) -> DocAddress {
    DocAddress::new((at >> 32) as u32, at as u32)
}

/// Reads the stored fields of a passage.
pub(super) fn read_stored(
    view: &CommitView,
    address: DocAddress,
) -> Result<StoredPassage, RecallError> {
    let document: TantivyDocument = view.searcher.doc(address).during(READING)?;
    decode_stored(view, &document)
}

fn decode_stored(
    view: &CommitView,
    document: &TantivyDocument,
) -> Result<StoredPassage, RecallError> {
    let stored = document.get_first(view.fields.stored);
    let bytes = stored
        .and_then(|stored| stored.as_bytes())
        .unwrap_or_default();
    Ok(serde_json::from_slice(bytes)?)
}

/// Reads every passage of a commit, segment by segment.
pub(super) fn scan_passages(
    view: &CommitView,
    each: &mut dyn FnMut(Passage),
) -> Result<(), RecallError> {
    for segment in view.searcher.segment_readers() {
        let documents = segment.get_store_reader(CACHED_BLOCKS).during(READING)?;
        for document in documents.iter::<TantivyDocument>(segment.alive_bitset()) {
            each(decode_stored(view, &document.during(READING)?)?.passage);
        }
    }
    Ok(())
}
