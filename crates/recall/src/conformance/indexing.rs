//! Conformance cases for indexing: batches in any order, and removal.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use throughline_model::{Owner, Seq};

use super::{
    IndexFixture, hybrid_query, owner, passage, session, session_passages, text_query, unique_word,
};
use crate::{Batch, Passage, Query, Removal, Scope};

/// A passage indexed twice is found once.
pub fn a_passage_indexed_twice_is_found_once(fixture: &mut IndexFixture) {
    let session = session_passages("s", &["one apple", "two pears", "three plums"]);
    let batch = |passages: Vec<Passage>, after| Batch {
        passages,
        removed: Vec::new(),
        after,
        upto: 3,
        anchors: Vec::new(),
    };
    fixture
        .indexer
        .index_batch(batch(session.clone(), 0))
        .unwrap();
    fixture
        .indexer
        .index_batch(batch(session.clone(), 3))
        .unwrap();
    fixture
        .indexer
        .index_batch(batch(session[1..].to_vec(), 3))
        .unwrap();
    assert_eq!(fixture.index.passage_count().unwrap(), 3);
    assert_eq!(fixture.index.watermark().unwrap(), 3);
    assert_eq!(fixture.find_text("pears").len(), 3);
}

/// The watermark never goes back.
pub fn the_watermark_never_goes_back(fixture: &mut IndexFixture) {
    let batch = |after, upto| Batch {
        after,
        upto,
        ..Batch::default()
    };
    fixture.indexer.index_batch(batch(0, 7)).unwrap();
    assert_eq!(fixture.indexer.index_batch(batch(7, 3)).unwrap(), 7);
    assert_eq!(fixture.index.watermark().unwrap(), 7);
}

/// A stale batch restores nothing that was removed.
pub fn a_stale_batch_restores_nothing(fixture: &mut IndexFixture) {
    fixture.index_texts(&["zero", "the password is hunter2"]);
    fixture.remove("s", Some(2));
    let late = Batch {
        passages: session_passages("s", &["zero", "the password is hunter2"]),
        removed: Vec::new(),
        after: 0,
        upto: 2,
        anchors: Vec::new(),
    };
    assert_eq!(fixture.indexer.index_batch(late).unwrap(), 3);
    assert!(fixture.find_text("hunter2").is_empty());
    assert_eq!(fixture.index.passage_count().unwrap(), 1);
}

/// Removing a session also removes its words from its forks' context.
pub fn removing_a_session_removes_its_words_from_forks(fixture: &mut IndexFixture) {
    fixture.index_passages(session_passages("origin", &["alpha", "omega secret"]));
    let mut fork = passage("fork", 3, "going on here");
    fork.origin = Some((session("origin"), Seq(2)));
    fixture.index_passages(vec![fork]);
    assert!(fixture.find_text("secret").contains(&"fork/3".to_owned()));
    fixture.remove("origin", None);
    assert!(fixture.find_text("secret").is_empty());
    assert_eq!(fixture.find_text("going"), ["fork/3"]);
}

/// The context of a fork includes the entries before it.
pub fn the_context_of_a_fork_includes_earlier_entries(fixture: &mut IndexFixture) {
    fixture.index_passages(session_passages(
        "origin",
        &["We chose Redis", "Fine", "Unrelated end"],
    ));
    let fork = |seq, text: &str| Passage {
        origin: Some((session("origin"), Seq(2))),
        ..passage("fork", seq, text)
    };
    fixture.index_passages(vec![fork(3, "Why that one?"), fork(4, "It was there")]);
    let found = fixture.find_text("redis");
    assert!(found.contains(&"fork/3".to_owned()), "{found:?}");
    // The origin's context does not include the fork, nor the fork's what came after it.
    assert!(!fixture.find_text("why").contains(&"origin/2".to_owned()));
    assert!(
        !fixture
            .find_text("unrelated")
            .contains(&"fork/3".to_owned())
    );
}

/// A session can be removed and indexed again in one batch.
pub fn a_session_can_be_removed_and_reindexed_in_one_batch(fixture: &mut IndexFixture) {
    fixture.index_texts(&["old words", "more old words"]);
    let batch = Batch {
        passages: session_passages("s", &["new words"]),
        removed: vec![Removal {
            owner: Owner::local(),
            session: session("s"),
            seq: None,
        }],
        after: 2,
        upto: 9,
        anchors: Vec::new(),
    };
    fixture.indexer.index_batch(batch).unwrap();
    assert!(fixture.find_text("old").is_empty());
    assert_eq!(fixture.find_text("new"), ["s/1"]);
}

/// A removed passage is not found, nor are its words in its neighbors' context.
pub fn a_removed_passage_is_not_found_in_its_neighbors(fixture: &mut IndexFixture) {
    fixture.index_texts(&[
        "zero",
        "one",
        "the password is hunter2",
        "three",
        "four",
        "five",
    ]);
    assert!(fixture.find_text("hunter2").contains(&"s/4".to_owned()));
    fixture.remove("s", Some(3));
    assert!(fixture.find_text("hunter2").is_empty());
    assert!(
        fixture
            .search(&hybrid_query("hunter2"))
            .hits
            .iter()
            .all(|hit| { !hit.text.contains("hunter2") && hit.score_parts.text == 0.0 })
    );
    assert_eq!(fixture.index.passage_count().unwrap(), 5);
    assert_eq!(fixture.find_text("four").len(), 4);
}

/// Term counts stay correct for many passages, and shrink when passages are removed.
pub fn term_counts_stay_correct_for_many_passages(fixture: &mut IndexFixture) {
    // More passages than fit in one storage block, in interleaved sessions.
    let mut batch = Vec::new();
    for number in 0..900_u64 {
        let id = format!("s{}", number % 7);
        let text = format!("{} common", unique_word(number));
        batch.push(passage(&id, number / 7 + 1, &text));
        if batch.len() == 90 {
            fixture.index_passages(std::mem::take(&mut batch));
        }
    }
    assert_eq!(fixture.index.passage_count().unwrap(), 900);
    let all = Query {
        limit: 1000,
        ..text_query("common")
    };
    assert_eq!(fixture.search(&all).hits.len(), 900);
    for number in [0_u64, 1, 255, 256, 511, 640, 899] {
        let found = fixture.find_text(&unique_word(number));
        let place = format!("s{}/{}", number % 7, number / 7 + 1);
        assert_eq!(found[0], place, "{found:?}");
        // The passage and its neighbors in the session.
        assert!((3..=5).contains(&found.len()), "{found:?}");
    }
    fixture.remove("s3", None);
    fixture.remove("s4", Some(10));
    assert_eq!(fixture.index.passage_count().unwrap(), 900 - 129 - 1);
    assert_eq!(fixture.search(&all).hits.len(), 900 - 129 - 1);
    assert!(fixture.find_text(&unique_word(3)).is_empty());
    assert!(fixture.find_text(&unique_word(67)).is_empty());
    assert_eq!(fixture.find_text(&unique_word(60))[0], "s4/9");
    fixture.index_passages(session_passages(
        "s3",
        &[&format!("{} is back", unique_word(3))],
    ));
    assert_eq!(fixture.find_text(&unique_word(3)), ["s3/1"]);
}

const WORDS: [&str; 12] = [
    "apple", "river", "stone", "cloud", "engine", "paper", "winter", "garden", "bridge", "signal",
    "the", "of",
];

fn story() -> impl Strategy<Value = Vec<(usize, Vec<usize>)>> {
    let text = prop::collection::vec(0..WORDS.len(), 1..8);
    prop::collection::vec((0..3_usize, text), 1..24)
}

/// Converts a story to passages: sessions 0 and 1 start from scratch, 2 is a fork of 0.
fn story_passages(story: &[(usize, Vec<usize>)]) -> Vec<Passage> {
    let mut lengths = [0_u64, 0, 0];
    let mut fork = None;
    let mut all = Vec::new();
    for (position, (which, words)) in (1..).zip(story) {
        if *which == 2 && fork.is_none() {
            fork = Some(lengths[0]);
            lengths[2] = lengths[0];
        }
        lengths[*which] += 1;
        let text: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
        let mut passage = passage(&format!("s{which}"), lengths[*which], &text.join(" "));
        passage.position = position;
        if *which == 2 {
            passage.origin = fork.filter(|at| *at > 0).map(|at| (session("s0"), Seq(at)));
        }
        all.push(passage);
    }
    all
}

/// The content of the index does not depend on how it was split into batches.
pub fn content_does_not_depend_on_batches(fixture: &mut IndexFixture) {
    let sizes = prop::collection::vec(1..6_usize, 24);
    let removed = prop::option::of(0..24_usize);
    let fixture = RefCell::new(fixture);
    let round = Cell::new(0);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    };
    let tested =
        TestRunner::new(config).run(&(story(), sizes, removed), |(story, sizes, removed)| {
            let mut fixture = fixture.borrow_mut();
            round.set(round.get() + 1);
            let all = story_passages(&story);
            let removed = removed.and_then(|index| all.get(index));
            let removed = removed.map(|passage| (passage.session.clone(), passage.seq));
            let whole = owner(&format!("whole-{}", round.get()));
            let pieces = owner(&format!("pieces-{}", round.get()));
            let of = |owner: &Owner, passages: &[Passage]| {
                let passages = passages.iter().cloned();
                let owned = passages.map(|passage| Passage {
                    owner: owner.clone(),
                    ..passage
                });
                owned.collect::<Vec<_>>()
            };
            let mut remaining = of(&whole, &all);
            remaining.retain(|one| Some((one.session.clone(), one.seq)) != removed);
            fixture.index_passages(remaining);
            let mut rest = &all[..];
            for size in sizes {
                let (now, later) = rest.split_at(size.min(rest.len()));
                fixture.index_passages(of(&pieces, now));
                rest = later;
            }
            if let Some((session, seq)) = removed {
                fixture.remove_all(vec![Removal {
                    owner: pieces.clone(),
                    session,
                    seq: Some(seq),
                }]);
            }
            // Scores also count terms in files that still contain removed passages.
            fixture.indexer.vacuum().unwrap();
            for word in WORDS {
                let scores = |owner: &Owner| {
                    let query = Query::new(word, Scope::new(owner.clone()));
                    let found = fixture.search(&query);
                    let mut scores: Vec<_> = found
                        .hits
                        .iter()
                        .map(|hit| {
                            let parts = hit.score_parts;
                            let parts = [parts.text, parts.pooled, parts.late, parts.session];
                            let parts = parts.map(|part| (part * 1e4).round());
                            (hit.session.clone(), hit.seq, parts)
                        })
                        .collect();
                    scores.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
                    scores
                };
                prop_assert_eq!(scores(&whole), scores(&pieces), "{}", word);
            }
            Ok(())
        });
    tested.unwrap();
}
