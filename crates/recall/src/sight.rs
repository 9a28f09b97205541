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
pub struct At(pub u64);

/// What is kept of a passage, to be shown and to be ranked by likeness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The passage.
    #[serde(flatten)]
    pub passage: Passage,
    /// The beginning of what was said just before: an answer is found by its question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
}

/// How many passages have each of some terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// For each term, in how many passages it is said; words around them do not count.
    pub with: Vec<u64>,
    /// How many passages there are.
    pub all: u64,
}

/// One state of an index, narrowed to a scope and to passages with some phrases.
pub trait Sight {
    /// The position up to which the store is in the index.
    fn watermark(&self) -> u64;

    /// How rare terms are, in scope or not.
    fn spread(&self, terms: &[&str]) -> Result<Spread, RecallError>;

    /// At most `count` terms that begin so, in scope or not but of nobody the searcher may
    /// not know of; the most frequent first.
    fn endings(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError>;

    /// The term said in scope that is written most like this one, if any is like it.
    fn nearest(&self, term: &str) -> Result<Option<String>, RecallError>;

    /// The passages in scope with some of the terms, in them or around them, by BM25; the
    /// best first.
    ///
    /// Where no passage has any of the terms but as a stop word, those count.
    fn by_words(&self, terms: &[&str], count: usize) -> Result<Vec<(f32, At)>, RecallError>;

    /// The scores of other passages for the same terms.
    fn scores(&self, terms: &[&str], at: &[At]) -> Result<Vec<f32>, RecallError>;

    /// The passages in scope most like a vector, the best first. None is passed over.
    fn by_likeness(&self, vector: &[f32], count: usize) -> Result<Vec<(f32, At)>, RecallError>;

    /// What is kept of passages, and how like a vector they are, in the order asked for.
    fn read(&self, at: &[At], vector: &[f32]) -> Result<Vec<(Kept, f32)>, RecallError>;
}
