//! How a word may be spelled that nobody in scope used.

use levenshtein_automata::{DFA, LevenshteinAutomatonBuilder};

/// The terms that are written much like one.
pub struct FuzzyTerm {
    pub(crate) automaton: DFA,
    max_distance: u8,
}

impl FuzzyTerm {
    /// Those like a term; a short one has none.
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

    /// How many letters a term is away, if it is like this one.
    pub fn distance(&self, term: &str) -> Option<u8> {
        match self.automaton.eval(term) {
            levenshtein_automata::Distance::Exact(away) => Some(away),
            levenshtein_automata::Distance::AtLeast(_) => None,
        }
    }

    /// At most so many letters away.
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
