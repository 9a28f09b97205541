//! The conformance suite that every index implementation passes.
//!
//! An implementation's tests call [`conformance!`](crate::conformance!) with a function that
//! runs a case on an empty index; each case becomes a test with its own name.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a suite of tests"
)]

pub mod indexing;
pub mod search;

use std::any::Any;

use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};

use crate::{Batch, Index, Indexer, Passage, Query, QueryResults, Removal, Scope};

/// Turns each case into a test: `$run` is called with the case, and passes it an empty index.
#[macro_export]
macro_rules! conformance {
    ($run:expr) => {
        $crate::conformance_cases! { $run;
            search: a_passage_is_found_by_its_words, a_passage_is_found_by_its_meaning, unrelated_passages_are_not_found, an_answer_is_found_by_the_words_of_its_question, code_is_found_as_a_whole_and_by_its_parts, a_phrase_must_occur_word_for_word, the_word_being_typed_matches_as_a_prefix, a_misspelled_word_is_corrected_and_reported, a_correction_never_reveals_words_of_other_owners, owners_never_see_each_other, a_scope_filters_by_every_immutable_property, naming_an_author_prefers_their_entries, a_date_in_a_question_prefers_that_time, a_snippet_is_the_best_excerpt_with_words_marked, hostile_text_is_indexed_and_searched, a_query_of_common_words_only_is_still_answered, the_limit_is_respected_and_an_empty_query_finds_nothing;
            indexing: a_passage_indexed_twice_is_found_once, the_watermark_never_goes_back, a_stale_batch_restores_nothing, removing_a_session_removes_its_words_from_forks, the_context_of_a_fork_includes_earlier_entries, a_session_can_be_removed_and_reindexed_in_one_batch, a_removed_passage_is_not_found_in_its_neighbors, term_counts_stay_correct_for_many_passages, content_does_not_depend_on_batches;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($run:expr; $($module:ident: $($case:ident),+;)+) => {
        $($(
            #[test]
            fn $case() {
                $run($crate::conformance::$module::$case);
            }
        )+)+
    };
}

/// Returns an owner.
pub fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}

/// Returns a session id.
pub fn session(id: &str) -> SessionId {
    id.parse().unwrap()
}

/// Returns a passage of the local owner.
pub fn passage(id: &str, seq: u64, text: &str) -> Passage {
    Passage {
        position: 0,
        owner: Owner::local(),
        session: session(id),
        seq: Seq(seq),
        role: if seq % 2 == 1 {
            Role::User
        } else {
            Role::Assistant
        },
        author: None,
        at: "2026-11-15T09:00:00Z".parse().unwrap(),
        text: text.to_owned(),
        files: Vec::new(),
        external_id: None,
        origin: None,
    }
}

/// Returns a word for a number that shares no part with other numbers' words.
pub fn unique_word(number: u64) -> String {
    let digits = number.to_string().into_bytes();
    let letters = digits
        .into_iter()
        .map(|digit| char::from(b"bcdfghjklm"[usize::from(digit - b'0')]));
    std::iter::once('x').chain(letters).collect()
}

/// Returns a session with these texts as passages.
pub fn session_passages(id: &str, texts: &[&str]) -> Vec<Passage> {
    let all = (1..).zip(texts);
    all.map(|(seq, text)| passage(id, seq, text)).collect()
}

/// Parses a timestamp.
pub fn timestamp(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// An index and its indexer.
#[derive(Debug)]
pub struct IndexFixture {
    /// The index.
    pub index: Box<dyn Index>,
    /// Its indexer.
    pub indexer: Indexer,
    position: u64,
    _keep: Box<dyn Any + Send>,
}

impl IndexFixture {
    /// Wraps an empty index; `keep` is dropped together with it.
    pub fn new(index: Box<dyn Index>, keep: impl Any + Send) -> Self {
        let indexer = index.indexer().unwrap().unwrap();
        Self {
            index,
            indexer,
            position: 0,
            _keep: Box::new(keep),
        }
    }

    /// Indexes these texts as one session, `s`.
    pub fn index_texts(&mut self, texts: &[&str]) {
        self.index_passages(session_passages("s", texts));
    }

    /// Indexes passages in one batch.
    pub fn index_passages(&mut self, mut passages: Vec<Passage>) {
        for passage in &mut passages {
            self.position += 1;
            passage.position = self.position;
        }
        let removed = Vec::new();
        let batch = Batch {
            passages,
            removed,
            after: self.index.watermark().unwrap(),
            upto: self.position,
            anchors: Vec::new(),
        };
        self.indexer.index_batch(batch).unwrap();
    }

    /// Removes an entry of a local session, or all of it.
    pub fn remove(&mut self, id: &str, seq: Option<u64>) {
        self.remove_all(vec![Removal {
            owner: Owner::local(),
            session: session(id),
            seq: seq.map(Seq),
        }]);
    }

    /// Applies these removals.
    pub fn remove_all(&mut self, removed: Vec<Removal>) {
        self.position += 1;
        let batch = Batch {
            passages: Vec::new(),
            removed,
            after: self.index.watermark().unwrap(),
            upto: self.position,
            anchors: Vec::new(),
        };
        self.indexer.index_batch(batch).unwrap();
    }

    /// Runs a query.
    pub fn search(&self, query: &Query) -> QueryResults {
        self.index.search(query).unwrap()
    }

    /// Returns the hits for some words, as `session/seq`.
    pub fn find(&self, words: &str) -> Vec<String> {
        hit_positions(&self.search(&hybrid_query(words)))
    }

    /// The same, by full text only.
    pub fn find_text(&self, words: &str) -> Vec<String> {
        hit_positions(&self.search(&text_query(words)))
    }
}

/// A hybrid query for some words, everywhere.
pub fn hybrid_query(words: &str) -> Query {
    Query::new(words, Scope::new(Owner::local()))
}

/// A full-text query for some words, everywhere.
pub fn text_query(words: &str) -> Query {
    Query {
        mode: crate::Mode::Text,
        ..hybrid_query(words)
    }
}

/// Returns the positions of hits, as `session/seq`.
pub fn hit_positions(found: &QueryResults) -> Vec<String> {
    let hits = found.hits.iter();
    hits.map(|hit| format!("{}/{}", hit.session, hit.seq))
        .collect()
}
