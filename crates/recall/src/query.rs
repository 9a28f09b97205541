//! A search query: words, phrases, scope and mode.

use crate::Scope;

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By full text.
    Text,
    /// By semantic similarity.
    Semantic,
    /// By both, fused.
    #[default]
    Hybrid,
}

/// A search query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The words, in any order.
    pub words: String,
    /// Phrases that a hit must contain word for word.
    pub phrases: Vec<String>,
    /// Where to search.
    pub scope: Scope,
    /// How to search.
    pub mode: Mode,
    /// The maximum number of hits.
    pub limit: usize,
    /// Whether the last word is still being typed and matches as a prefix.
    pub typing: bool,
    /// The approximate length of a snippet, in characters.
    pub snippet: usize,
}

impl Query {
    /// Creates a hybrid query for these words.
    pub fn new(words: impl Into<String>, scope: Scope) -> Self {
        Self {
            words: words.into(),
            phrases: Vec::new(),
            scope,
            mode: Mode::default(),
            limit: 20,
            typing: false,
            snippet: 160,
        }
    }
}
