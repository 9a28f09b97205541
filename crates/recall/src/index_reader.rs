//! The read side of an index: one consistent snapshot, restricted to a scope.
//!
//! Each backend that stores passages implements [`IndexReader`]; ranking the candidates is the
//! same for all of them (`search.rs`).
//!
//! Invariant: a reader never returns anything outside its scope, and all its results come from
//! the same snapshot.

use serde::{Deserialize, Serialize};

use crate::{Passage, RecallError};

/// The backend's address of a passage. Among passages with equal scores, the one with the
/// smaller id comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PassageId(pub u64);

/// The stored fields of a passage, used for display and for scoring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPassage {
    /// The passage.
    #[serde(flatten)]
    pub passage: Passage,
    /// The beginning of the entry just before: an answer is found by the words of its
    /// question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "before")]
    pub previous_text: String,
}

/// How many passages contain each of some terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocFrequencies {
    /// For each term, the number of passages that contain it themselves; the words of
    /// neighboring passages do not count.
    pub counts: Vec<u64>,
    /// The total number of passages.
    pub total: u64,
}

/// A snapshot of an index, restricted to a scope and to passages with certain phrases.
pub trait IndexReader {
    /// Returns the store position up to which entries are indexed.
    fn watermark(&self) -> u64;

    /// Returns the document frequencies of terms, regardless of scope.
    fn doc_frequencies(&self, terms: &[&str]) -> Result<DocFrequencies, RecallError>;

    /// Returns at most `count` terms with a prefix, the most frequent first. They may be out
    /// of scope, but never come from owners the searcher has no access to.
    fn complete_prefix(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError>;

    /// Returns the term in scope whose spelling is closest, if any is close enough.
    fn correct_spelling(&self, term: &str) -> Result<Option<String>, RecallError>;

    /// Returns the passages in scope that contain some of the terms, in their own text or in
    /// their context, by BM25 score; the best first.
    ///
    /// Stop words count only if no passage contains any of the other terms.
    fn search_text(
        &self,
        terms: &[&str],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError>;

    /// Returns the BM25 scores of given passages for the same terms.
    fn text_scores(&self, terms: &[&str], at: &[PassageId]) -> Result<Vec<f32>, RecallError>;

    /// Returns the passages in scope nearest to a vector, the best first. The search is exact.
    fn nearest_vectors(
        &self,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError>;

    /// Returns the stored fields of passages and their similarity to a vector, in the order
    /// requested.
    fn read_passages(
        &self,
        at: &[PassageId],
        vector: &[f32],
    ) -> Result<Vec<(StoredPassage, f32)>, RecallError>;
}
