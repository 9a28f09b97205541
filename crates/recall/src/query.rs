//! What to look for.

use crate::Scope;

/// How to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By words.
    Text,
    /// By meaning.
    Semantic,
    /// By both, fused.
    #[default]
    Hybrid,
}

/// What to look for, where and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The words, in any order.
    pub words: String,
    /// What has to be there word by word.
    pub phrases: Vec<String>,
    /// Where.
    pub scope: Scope,
    /// How.
    pub mode: Mode,
    /// At most so many hits.
    pub limit: usize,
    /// Whether the last word is still being typed, and stands for all that begin with it.
    pub typing: bool,
    /// About how long a snippet is, in characters.
    pub snippet: usize,
}

impl Query {
    /// Looks for these words, by both text and meaning.
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
