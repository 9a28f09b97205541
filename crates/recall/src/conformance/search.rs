//! Conformance cases for search: what is found, by whom, and how it is shown.

use throughline_model::{Owner, Role, Seq};

use super::{
    IndexFixture, hit_positions, hybrid_query, owner, passage, session, session_passages,
    text_query, timestamp,
};
use crate::{Mode, Query, Scope, SessionRange};

/// A passage is found by its words.
pub fn a_passage_is_found_by_its_words(fixture: &mut IndexFixture) {
    fixture.index_texts(&[
        "The cat sat on the mat",
        "Dogs bark at night",
        "Bread is baked",
    ]);
    assert_eq!(fixture.find_text("barking")[0], "s/2");
    assert_eq!(fixture.find("cats")[0], "s/1");
}

/// A passage is found by its meaning, without sharing words.
pub fn a_passage_is_found_by_its_meaning(fixture: &mut IndexFixture) {
    fixture.index_passages(session_passages(
        "a",
        &["My physician prescribed pills for the infection."],
    ));
    fixture.index_passages(session_passages(
        "b",
        &["The train to Lyon leaves at noon."],
    ));
    fixture.index_passages(session_passages("c", &["We painted the fence green."]));
    let query = Query {
        mode: Mode::Semantic,
        ..hybrid_query("doctor and medicine")
    };
    assert_eq!(hit_positions(&fixture.search(&query))[0], "a/1");
    assert_eq!(fixture.find("doctor and medicine")[0], "a/1");
}

/// Unrelated passages are not found.
pub fn unrelated_passages_are_not_found(fixture: &mut IndexFixture) {
    fixture.index_texts(&[
        "My physician prescribed pills.",
        "The train leaves at noon.",
    ]);
    assert!(fixture.find("quantum chromodynamics").is_empty());
    assert!(fixture.find("xqzvw blorpt").is_empty());
}

/// An answer is found by the words of its question.
pub fn an_answer_is_found_by_the_words_of_its_question(fixture: &mut IndexFixture) {
    fixture.index_passages(session_passages(
        "a",
        &[
            "Which city did you grow up in?",
            "Lisbon, until I was twelve.",
        ],
    ));
    fixture.index_passages(session_passages(
        "b",
        &["I like the sea.", "Me too, every summer."],
    ));
    let found = fixture.find("which city did they grow up in");
    assert!(found[..2].contains(&"a/2".to_owned()), "{found:?}");
}

/// Code is found as a whole and by its parts.
pub fn code_is_found_as_a_whole_and_by_its_parts(fixture: &mut IndexFixture) {
    fixture.index_texts(&[
        "Fix parseHttpHeader in src/net/header.rs",
        "error[E0308]: mismatched types",
        "set max_retry_count to 30ms",
    ]);
    assert_eq!(fixture.find_text("header.rs")[0], "s/1");
    assert_eq!(fixture.find_text("parseHttpHeader")[0], "s/1");
    assert_eq!(fixture.find_text("E0308")[0], "s/2");
    assert_eq!(fixture.find_text("max_retry_count")[0], "s/3");
    assert_eq!(fixture.find_text("retry")[0], "s/3");
}

/// A phrase must occur word for word.
pub fn a_phrase_must_occur_word_for_word(fixture: &mut IndexFixture) {
    fixture.index_passages(session_passages("a", &["the quick brown fox"]));
    fixture.index_passages(session_passages("b", &["the brown quick fox"]));
    let query = Query {
        phrases: vec!["quick brown".to_owned()],
        ..hybrid_query("")
    };
    assert_eq!(hit_positions(&fixture.search(&query)), ["a/1"]);
    let none = Query {
        phrases: vec!["fox quick".to_owned()],
        ..hybrid_query("brown")
    };
    assert!(fixture.search(&none).hits.is_empty());
}

/// The word being typed matches as a prefix.
pub fn the_word_being_typed_matches_as_a_prefix(fixture: &mut IndexFixture) {
    fixture.index_texts(&["The database migration failed", "Nothing else happened"]);
    let typing = |words| Query {
        typing: true,
        ..text_query(words)
    };
    assert_eq!(
        hit_positions(&fixture.search(&typing("migration data")))[0],
        "s/1"
    );
    assert_eq!(hit_positions(&fixture.search(&typing("migr")))[0], "s/1");
    let done = text_query("migr");
    assert!(fixture.search(&done).hits.is_empty() || fixture.search(&done).corrected.is_some());
}

/// A misspelled word is corrected, and the correction is reported.
pub fn a_misspelled_word_is_corrected_and_reported(fixture: &mut IndexFixture) {
    fixture.index_texts(&["The database migration failed", "Nothing else happened"]);
    let found = fixture.search(&text_query("databse"));
    assert_eq!(hit_positions(&found)[0], "s/1");
    assert_eq!(found.corrected.as_deref(), Some("database"));
    assert_eq!(fixture.search(&text_query("database")).corrected, None);
}

/// A correction never reveals words of other owners.
pub fn a_correction_never_reveals_words_of_other_owners(fixture: &mut IndexFixture) {
    let mut secret = passage("x", 1, "project Halcyonix");
    secret.owner = owner("other");
    fixture.index_passages(vec![secret, passage("s", 1, "something else")]);
    let found = fixture.search(&text_query("Halcyonx"));
    assert_eq!(found.corrected, None);
    assert!(found.hits.is_empty());
}

/// Owners never see each other.
pub fn owners_never_see_each_other(fixture: &mut IndexFixture) {
    let mut theirs = session_passages("s", &["the shared secret is plums", "and pears"]);
    for passage in &mut theirs {
        passage.owner = owner("other");
    }
    fixture.index_passages(theirs);
    fixture.index_passages(session_passages("s", &["the shared secret is apples"]));
    for mode in [Mode::Text, Mode::Semantic, Mode::Hybrid] {
        for (who, count) in [("local", 1), ("other", 2), ("nobody", 0)] {
            let query = Query {
                mode,
                ..Query::new("shared secret", Scope::new(owner(who)))
            };
            let found = fixture.search(&query);
            assert_eq!(found.hits.len(), count, "{who} {mode:?}");
        }
    }
    // Their words do not count as context either.
    let query = Query::new("pears", Scope::new(Owner::local()));
    assert!(
        fixture
            .search(&query)
            .hits
            .iter()
            .all(|hit| hit.score_parts.text == 0.0)
    );
}

/// A scope filters by every immutable property.
pub fn a_scope_filters_by_every_immutable_property(fixture: &mut IndexFixture) {
    let mut one = passage("a", 1, "tea at the office");
    one.author = Some("Ada Lovelace".to_owned());
    one.files = vec!["src/Kitchen/tea.rs".to_owned()];
    let mut two = passage("a", 2, "tea again");
    two.at = timestamp("2026-11-20T00:00:00Z");
    let three = passage("b", 1, "more tea");
    fixture.index_passages(vec![one, two, three]);
    let find = |narrow: fn(&mut Scope)| {
        let mut query = hybrid_query("tea");
        narrow(&mut query.scope);
        let mut found = hit_positions(&fixture.search(&query));
        found.sort();
        found
    };
    assert_eq!(find(|_| {}), ["a/1", "a/2", "b/1"]);
    assert_eq!(find(|scope| scope.roles = vec![Role::Assistant]), ["a/2"]);
    assert_eq!(
        find(|scope| scope.authors = vec!["ada lovelace".to_owned()]),
        ["a/1"]
    );
    assert_eq!(
        find(|scope| scope.authors = vec!["Lovelace".to_owned()]),
        ["a/1"]
    );
    assert_eq!(
        find(|scope| scope.files = vec!["kitchen".to_owned()]),
        ["a/1"]
    );
    assert_eq!(
        find(|scope| scope.files = vec!["k.tchen".to_owned()]),
        [""; 0]
    );
    assert_eq!(
        find(|scope| scope.after = Some(timestamp("2026-11-20T00:00:00Z"))),
        ["a/2"]
    );
    assert_eq!(
        find(|scope| scope.before = Some(timestamp("2026-11-20T00:00:00Z"))),
        ["a/1", "b/1"]
    );
    assert_eq!(find(|scope| scope.except = vec![session("a")]), ["b/1"]);
    assert_eq!(find(|scope| scope.sessions = Some(Vec::new())), [""; 0]);
    let upto = |scope: &mut Scope| {
        scope.sessions = Some(vec![SessionRange {
            session: session("a"),
            to: Some(Seq(1)),
        }]);
    };
    assert_eq!(find(upto), ["a/1"]);
}

/// Naming an author prefers their entries.
pub fn naming_an_author_prefers_their_entries(fixture: &mut IndexFixture) {
    let mut line = session_passages("s", &["I adopted a puppy", "Grace, I adopted a puppy"]);
    line[0].author = Some("Grace".to_owned());
    line[1].author = Some("Alan".to_owned());
    fixture.index_passages(line);
    assert_eq!(fixture.find("What did Grace adopt?")[0], "s/1");
}

/// A date in a question prefers that time.
pub fn a_date_in_a_question_prefers_that_time(fixture: &mut IndexFixture) {
    let mut one = passage("a", 1, "We went hiking");
    one.at = timestamp("2023-05-08T10:00:00Z");
    let mut two = passage("b", 1, "We went hiking");
    two.at = timestamp("2023-09-12T10:00:00Z");
    fixture.index_passages(vec![one, two]);
    assert_eq!(fixture.find("hiking in September 2023")[0], "b/1");
    assert_eq!(fixture.find("hiking in May 2023")[0], "a/1");
}

/// A snippet is the best excerpt with the matched words marked.
pub fn a_snippet_is_the_best_excerpt_with_words_marked(fixture: &mut IndexFixture) {
    let filler = "Lorem ipsum dolor sit amet. ".repeat(60);
    let long = format!("{filler}Then the Flux\n\n  capacitor was repaired. {filler}");
    fixture.index_texts(&[&long]);
    let found = fixture.search(&text_query("repair flux capacitors"));
    let snippet = &found.hits[0].snippet;
    let marked: Vec<&str> = snippet
        .marks
        .iter()
        .map(|mark| &snippet.text[mark.clone()])
        .collect();
    assert_eq!(marked, ["Flux", "capacitor", "repaired"]);
    assert!(
        snippet.text.contains("the Flux capacitor was"),
        "{}",
        snippet.text
    );
    assert!(snippet.cut_before && snippet.cut_after);
    assert!(
        snippet.text.chars().count() <= 165,
        "{}",
        snippet.text.len()
    );
}

/// Hostile text is indexed and searched.
pub fn hostile_text_is_indexed_and_searched(fixture: &mut IndexFixture) {
    let huge = "word ".repeat(200_000) + "needle";
    let blob = "A".repeat(300_000);
    fixture.index_texts(&[
        &huge,
        &blob,
        "nul\0byte and \u{1b}[31mcolor",
        "e\u{301}\u{301}\u{301}t\u{301}e",
        "",
        "🦀🦀🦀",
        "\u{1} same place \u{1}",
    ]);
    assert_eq!(fixture.find_text("needle")[0], "s/1");
    assert!(!fixture.find_text("color").is_empty());
    for words in [
        "",
        " ",
        "\0",
        "🦀",
        "\"",
        "the",
        "to be or not to be",
        &blob,
        "\u{301}",
    ] {
        for mode in [Mode::Text, Mode::Semantic, Mode::Hybrid] {
            for typing in [false, true] {
                let query = Query {
                    mode,
                    typing,
                    ..hybrid_query(words)
                };
                fixture.search(&query);
            }
        }
    }
}

/// A query of common words only is still answered.
pub fn a_query_of_common_words_only_is_still_answered(fixture: &mut IndexFixture) {
    fixture.index_texts(&["to be or not to be", "something different"]);
    assert_eq!(fixture.find_text("to be or not to be")[0], "s/1");
}

/// The limit is respected, and an empty query finds nothing.
pub fn the_limit_is_respected_and_an_empty_query_finds_nothing(fixture: &mut IndexFixture) {
    let texts: Vec<String> = (0..150).map(|n| format!("apple number {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    fixture.index_texts(&texts);
    for limit in [0, 1, 10, 120, 1000] {
        let query = Query {
            limit,
            ..hybrid_query("apple")
        };
        assert_eq!(fixture.search(&query).hits.len(), limit.min(150));
    }
    assert!(fixture.search(&hybrid_query("")).hits.is_empty());
}
