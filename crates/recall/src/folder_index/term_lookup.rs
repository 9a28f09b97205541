//! Completes prefixes and corrects spelling from the term dictionary.
//!
//! Invariant: a correction is a word of a passage in scope, so that it reveals nothing about
//! other passages.

use levenshtein_automata::{DFA, SINK_STATE};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, TERMINATED};

use super::CommitView;
use super::doc_filter::DocFilter;
use crate::error::ErrorContext as _;
use crate::{FuzzyTerm, RecallError};

/// The maximum number of terms scanned for a prefix, per segment.
const MAX_SCANNED_TERMS: usize = 2000;

/// Returns the indexed terms with a prefix, the most frequent first.
pub(crate) fn complete_prefix(
    view: &CommitView,
    prefix: &str,
    count: usize,
) -> Result<Vec<String>, RecallError> {
    let during = "completing a word";
    let mut found: std::collections::HashMap<String, u64> = std::collections::HashMap::new();
    for segment in view.searcher.segment_readers() {
        let index = segment
            .inverted_index(view.fields.own_terms)
            .during(during)?;
        let mut stream = index
            .terms()
            .range()
            .ge(prefix.as_bytes())
            .into_stream()
            .during(during)?;
        let mut looked_at = 0;
        while stream.advance()
            && looked_at < MAX_SCANNED_TERMS
            && stream.key().starts_with(prefix.as_bytes())
        {
            looked_at += 1;
            if let Ok(term) = std::str::from_utf8(stream.key()) {
                *found.entry(term.to_owned()).or_default() += u64::from(stream.value().doc_freq);
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.cmp(b)));
    Ok(found
        .into_iter()
        .take(count)
        .map(|(term, _)| term)
        .collect())
}

/// Returns the term in scope whose spelling is closest, if any is close enough.
pub(crate) fn correct_spelling(
    view: &CommitView,
    filter: &DocFilter,
    term: &str,
) -> Result<Option<String>, RecallError> {
    let during = "correcting the spelling of a word";
    let Some(spelling) = FuzzyTerm::new(term) else {
        return Ok(None);
    };
    let mut best: Option<(u8, u64, String)> = None;
    for (ord, segment) in view.searcher.segment_readers().iter().enumerate() {
        let index = segment
            .inverted_index(view.fields.own_terms)
            .during(during)?;
        let stream = index
            .terms()
            .search(LevenshteinAutomaton(&spelling.automaton))
            .into_stream();
        let mut stream = stream.during(during)?;
        while stream.advance() {
            let Ok(found) = std::str::from_utf8(stream.key()) else {
                continue;
            };
            let Some(distance) = spelling.distance(found) else {
                continue;
            };
            let better = best.as_ref().is_none_or(|(least, many, _)| {
                distance < *least
                    || (distance == *least && u64::from(stream.value().doc_freq) > *many)
            });
            if !better {
                continue;
            }
            let mut postings = index
                .read_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)
                .during(during)?;
            let mut in_scope = 0;
            while postings.doc() != TERMINATED && in_scope < 1000 {
                in_scope += u64::from(filter.segment(ord).contains(segment, postings.doc()));
                postings.advance();
            }
            if in_scope > 0 {
                best = Some((distance, in_scope, found.to_owned()));
            }
        }
    }
    Ok(best.map(|(_, _, term)| term))
}

/// Adapts the automaton to the engine's dictionary.
struct LevenshteinAutomaton<'a>(&'a DFA);

impl tantivy_fst::Automaton for LevenshteinAutomaton<'_> {
    type State = u32;

    fn start(&self) -> u32 {
        self.0.initial_state()
    }

    fn is_match(&self, state: &u32) -> bool {
        matches!(
            self.0.distance(*state),
            levenshtein_automata::Distance::Exact(_)
        )
    }

    fn can_match(&self, state: &u32) -> bool {
        *state != SINK_STATE
    }

    fn accept(&self, state: &u32, byte: u8) -> u32 {
        self.0.transition(*state, byte)
    }
}
