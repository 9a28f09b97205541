//! What a search sees of an index: one state of it, narrowed to where the search may look.
//!
//! Whoever keeps passages implements [`Sight`]; what is made of the candidates is the same
//! for all of them (`search.rs`).
//!
//! Invariant: nothing outside the scope a sight was made for is ever answered, and all
//! answers are of the same state.

use serde::{Deserialize, Serialize};

use crate::{Passage, RecallError};

/// Where a passage is, to whoever keeps it. Of equal passages the one with the smaller is
/// taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PassageId(pub u64);

/// What is kept of a passage, to be shown and to be ranked by likeness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPassage {
    /// The passage.
    #[serde(flatten)]
    pub passage: Passage,
    /// The beginning of what was said just before: an answer is found by its question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "before")]
    pub previous_text: String,
}

/// How many passages have each of some terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocFrequencies {
    /// For each term, in how many passages it is said; words around them do not count.
    pub counts: Vec<u64>,
    /// How many passages there are.
    pub total: u64,
}

/// One state of an index, narrowed to a scope and to passages with some phrases.
pub trait IndexReader {
    /// The position up to which the store is in the index.
    fn watermark(&self) -> u64;

    /// How rare terms are, in scope or not.
    fn doc_frequencies(&self, terms: &[&str]) -> Result<DocFrequencies, RecallError>;

    /// At most `count` terms that begin so, in scope or not but of nobody the searcher may
    /// not know of; the most frequent first.
    fn complete_prefix(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError>;

    /// The term said in scope that is written most like this one, if any is like it.
    fn correct_spelling(&self, term: &str) -> Result<Option<String>, RecallError>;

    /// The passages in scope with some of the terms, in them or around them, by BM25; the
    /// best first.
    ///
    /// Where no passage has any of the terms but as a stop word, those count.
    fn search_text(
        &self,
        terms: &[&str],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError>;

    /// The scores of other passages for the same terms.
    fn text_scores(&self, terms: &[&str], at: &[PassageId]) -> Result<Vec<f32>, RecallError>;

    /// The passages in scope most like a vector, the best first. None is passed over.
    fn nearest_vectors(
        &self,
        vector: &[f32],
        count: usize,
    ) -> Result<Vec<(f32, PassageId)>, RecallError>;

    /// What is kept of passages, and how like a vector they are, in the order asked for.
    fn read_passages(
        &self,
        at: &[PassageId],
        vector: &[f32],
    ) -> Result<Vec<(StoredPassage, f32)>, RecallError>;
}
