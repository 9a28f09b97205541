//! The suite every index passes, case by case.
//!
//! An index's tests call [`conformance!`](crate::conformance!) with what runs a case on an
//! empty index; each case becomes a test of its own name.

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

/// Gives each case a test of its own: `$run` is called with the case, and gives it an empty
/// index.
#[macro_export]
macro_rules! conformance {
    ($run:expr) => {
        $crate::conformance_cases! { $run;
            search: what_was_said_is_found_by_its_words, what_was_meant_is_found_without_its_words, what_is_about_something_else_is_not_found, an_answer_is_found_by_the_words_of_its_question, code_is_found_whole_and_in_parts, a_phrase_has_to_be_there_word_by_word, the_word_being_typed_stands_for_all_that_begin_with_it, a_misspelled_word_finds_what_was_meant_and_says_so, a_correction_never_reveals_what_others_have_said, owners_never_see_each_other, a_scope_narrows_by_everything_that_never_changes, naming_someone_prefers_what_they_said, a_date_in_a_question_prefers_that_time, a_snippet_is_the_best_place_with_its_words_marked, hostile_text_is_indexed_and_searched, a_query_of_common_words_only_is_still_answered, a_limit_is_kept_and_an_empty_query_finds_nothing;
            indexing: what_is_indexed_twice_is_there_once, the_watermark_never_goes_back, a_batch_that_comes_too_late_brings_nothing_back, a_removed_session_is_gone_with_what_forks_had_of_it, a_fork_has_what_came_before_it_around_it, a_session_can_be_removed_and_indexed_again_at_once, an_erased_passage_is_not_found_nor_in_those_around_it, many_passages_are_found_changed_and_forgotten, batches_make_no_difference;
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

/// An owner.
pub fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}

/// A session's id.
pub fn session(id: &str) -> SessionId {
    id.parse().unwrap()
}

/// An entry of `local`'s.
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

/// A word for a number, unlike any other's in all its parts.
pub fn unique_word(number: u64) -> String {
    let digits = number.to_string().into_bytes();
    let letters = digits
        .into_iter()
        .map(|digit| char::from(b"bcdfghjklm"[usize::from(digit - b'0')]));
    std::iter::once('x').chain(letters).collect()
}

/// A session in which these things are said.
pub fn session_passages(id: &str, texts: &[&str]) -> Vec<Passage> {
    let all = (1..).zip(texts);
    all.map(|(seq, text)| passage(id, seq, text)).collect()
}

/// A time.
pub fn timestamp(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// An index, and the one who feeds it.
#[derive(Debug)]
pub struct IndexFixture {
    /// The index.
    pub index: Box<dyn Index>,
    /// The one who feeds it.
    pub indexer: Indexer,
    position: u64,
    _keep: Box<dyn Any + Send>,
}

impl IndexFixture {
    /// An empty index, and what must live as long as it.
    pub fn new(index: Box<dyn Index>, keep: impl Any + Send) -> Self {
        let indexer = index.indexer().unwrap().unwrap();
        Self {
            index,
            indexer,
            position: 0,
            _keep: Box::new(keep),
        }
    }

    /// Says these things in one session, `s`.
    pub fn index_texts(&mut self, texts: &[&str]) {
        self.index_passages(session_passages("s", texts));
    }

    /// Feeds it passages in one batch.
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

    /// Takes out an entry of a session of `local`'s, or all of it.
    pub fn remove(&mut self, id: &str, seq: Option<u64>) {
        self.remove_all(vec![Removal {
            owner: Owner::local(),
            session: session(id),
            seq: seq.map(Seq),
        }]);
    }

    /// Takes these things out.
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

    /// What is found.
    pub fn search(&self, query: &Query) -> QueryResults {
        self.index.search(query).unwrap()
    }

    /// What is found for some words, as `session/seq`.
    pub fn find(&self, words: &str) -> Vec<String> {
        hit_positions(&self.search(&hybrid_query(words)))
    }

    /// The same, by words only.
    pub fn find_text(&self, words: &str) -> Vec<String> {
        hit_positions(&self.search(&text_query(words)))
    }
}

/// Looks everywhere for some words, in every way.
pub fn hybrid_query(words: &str) -> Query {
    Query::new(words, Scope::new(Owner::local()))
}

/// Looks everywhere for some words, by words only.
pub fn text_query(words: &str) -> Query {
    Query {
        mode: crate::Mode::Text,
        ..hybrid_query(words)
    }
}

/// Where hits are, as `session/seq`.
pub fn hit_positions(found: &QueryResults) -> Vec<String> {
    let hits = found.hits.iter();
    hits.map(|hit| format!("{}/{}", hit.session, hit.seq))
        .collect()
}
