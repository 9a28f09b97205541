//! Matches terms by edit distance, to correct words that do not occur in scope.

use levenshtein_automata::{DFA, LevenshteinAutomatonBuilder};

/// Matches the terms within a small edit distance of a term.
pub struct FuzzyTerm {
    pub(crate) automaton: DFA,
    max_distance: u8,
}

impl FuzzyTerm {
    /// Creates a matcher; `None` for a term too short to correct.
    pub fn new(term: &str) -> Option<Self> {
        let most = match term.chars().count() {
            0..=3 => return None,
            4..=7 => 1,
            _ => 2,
        };
        Some(Self {
            automaton: LevenshteinAutomatonBuilder::new(most, true).build_dfa(term),
            max_distance: most,
        })
    }

    /// Returns the edit distance to a term, if it is within the maximum.
    pub fn distance(&self, term: &str) -> Option<u8> {
        match self.automaton.eval(term) {
            levenshtein_automata::Distance::Exact(distance) => Some(distance),
            levenshtein_automata::Distance::AtLeast(_) => None,
        }
    }

    /// Returns the maximum edit distance.
    pub fn max_distance(&self) -> u8 {
        self.max_distance
    }
}

impl std::fmt::Debug for FuzzyTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spelling")
            .field("most", &self.max_distance)
            .finish_non_exhaustive()
    }
}
