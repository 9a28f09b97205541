//! Feeding: in any order of batches, by one process for many, through crashes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Fed, everywhere, owner, passage, places, said, session, text};
use proptest::prelude::*;
use throughline_model::{Owner, Seq};
use throughline_recall::{Batch, ErrorKind, Index, Passage, Query, RecallError, Removal, Scope};

#[test]
fn what_is_fed_twice_is_there_once() {
    let mut fed = Fed::new();
    let session = said("s", &["one apple", "two pears", "three plums"]);
    let batch = |passages: Vec<Passage>| Batch {
        passages,
        removed: Vec::new(),
        upto: 3,
    };
    fed.feeder.feed(batch(session.clone())).unwrap();
    fed.feeder.feed(batch(session.clone())).unwrap();
    fed.feeder.feed(batch(session[1..].to_vec())).unwrap();
    assert_eq!(fed.index.passages().unwrap(), 3);
    assert_eq!(fed.index.watermark().unwrap(), 3);
    assert_eq!(fed.find_text("pears").len(), 3);
}

#[test]
fn the_watermark_never_goes_back() {
    let mut fed = Fed::new();
    let upto = |upto| Batch {
        upto,
        ..Batch::default()
    };
    fed.feeder.feed(upto(7)).unwrap();
    assert_eq!(fed.feeder.feed(upto(3)).unwrap(), 7);
    assert_eq!(fed.index.watermark().unwrap(), 7);
}

#[test]
fn one_feeds_and_all_read() {
    let mut fed = Fed::with(&["first words"]);
    let other = Index::open(fed.folder.path()).unwrap();
    assert!(other.feeder().unwrap().is_none());
    assert_eq!(other.watermark().unwrap(), 1);
    fed.feed(said("t", &["second words"]));
    assert_eq!(other.watermark().unwrap(), 2);
    assert_eq!(places(&other.search(&text("second")).unwrap())[0], "t/1");
    drop(fed.feeder);
    let mut next = other.feeder().unwrap().unwrap();
    let batch = Batch {
        passages: said("u", &["third words"]),
        removed: Vec::new(),
        upto: 3,
    };
    next.feed(batch).unwrap();
    assert_eq!(fed.index.watermark().unwrap(), 3);
}

#[test]
fn an_erased_passage_is_not_found_nor_in_those_around_it() {
    let mut fed = Fed::with(&[
        "zero",
        "one",
        "the password is hunter2",
        "three",
        "four",
        "five",
    ]);
    assert!(fed.find_text("hunter2").contains(&"s/4".to_owned()));
    fed.remove("s", Some(3));
    assert!(fed.find_text("hunter2").is_empty());
    assert!(
        fed.search(&everywhere("hunter2"))
            .hits
            .iter()
            .all(|hit| { !hit.text.contains("hunter2") && hit.why.text == 0.0 })
    );
    fed.feeder.scrub().unwrap();
    assert!(!anywhere_on_disk(fed.folder.path(), b"hunter2"));
    assert_eq!(fed.index.passages().unwrap(), 5);
    assert_eq!(fed.find_text("four").len(), 4);
}

fn anywhere_on_disk(folder: &std::path::Path, what: &[u8]) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path)
                .unwrap()
                .windows(what.len())
                .any(|bytes| bytes == what)
            {
                return true;
            }
        }
    }
    false
}

#[test]
fn a_removed_session_is_gone_with_what_forks_had_of_it() {
    let mut fed = Fed::new();
    fed.feed(said("origin", &["alpha", "omega secret"]));
    let mut fork = passage("fork", 3, "going on here");
    fork.origin = Some((session("origin"), Seq(2)));
    fed.feed(vec![fork]);
    assert!(fed.find_text("secret").contains(&"fork/3".to_owned()));
    fed.remove("origin", None);
    assert!(fed.find_text("secret").is_empty());
    assert_eq!(fed.find_text("going"), ["fork/3"]);
}

#[test]
fn a_fork_has_what_came_before_it_around_it() {
    let mut fed = Fed::new();
    fed.feed(said("origin", &["We chose Redis", "Fine", "Unrelated end"]));
    let fork = |seq, text: &str| Passage {
        origin: Some((session("origin"), Seq(2))),
        ..passage("fork", seq, text)
    };
    fed.feed(vec![fork(3, "Why that one?"), fork(4, "It was there")]);
    let found = fed.find_text("redis");
    assert!(found.contains(&"fork/3".to_owned()), "{found:?}");
    // Nor does the origin know of the fork, or the fork of what came after it.
    assert!(!fed.find_text("why").contains(&"origin/2".to_owned()));
    assert!(!fed.find_text("unrelated").contains(&"fork/3".to_owned()));
}

#[test]
fn a_session_can_be_removed_and_fed_again_at_once() {
    let mut fed = Fed::with(&["old words", "more old words"]);
    let batch = Batch {
        passages: said("s", &["new words"]),
        removed: vec![Removal {
            owner: Owner::local(),
            session: session("s"),
            seq: None,
        }],
        upto: 9,
    };
    fed.feeder.feed(batch).unwrap();
    assert!(fed.find_text("old").is_empty());
    assert_eq!(fed.find_text("new"), ["s/1"]);
}

#[test]
fn an_index_of_another_version_is_stale_and_can_be_cleared() {
    let fed = Fed::with(&["words"]);
    let about = fed.folder.path().join("about.json");
    std::fs::write(&about, r#"{"format":0,"model":"other"}"#).unwrap();
    let error = Index::open(fed.folder.path()).unwrap_err();
    assert!(matches!(error, RecallError::Stale { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Rebuild);
    let busy = Index::clear(fed.folder.path()).unwrap_err();
    assert!(matches!(busy, RecallError::Busy(_)));
    let Fed { folder, feeder, .. } = fed;
    drop(feeder);
    Index::clear(folder.path()).unwrap();
    let index = Index::open(folder.path()).unwrap();
    assert_eq!(index.watermark().unwrap(), 0);
    assert_eq!(index.passages().unwrap(), 0);
}

#[test]
fn a_damaged_folder_says_that_it_can_be_built_again() {
    let Fed {
        folder,
        feeder,
        index,
        ..
    } = Fed::with(&["words"]);
    drop((feeder, index));
    std::fs::write(folder.path().join("text/meta.json"), "{").unwrap();
    let error = Index::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rebuild, "{error}");
    Index::clear(folder.path()).unwrap();
    Index::open(folder.path()).unwrap();
}

#[test]
fn what_was_not_committed_is_not_there_after_a_crash() {
    let fed = Fed::with(&["durable words"]);
    // A crash while feeding leaves files that belong to no commit.
    let stray = fed
        .folder
        .path()
        .join("text/0123456789abcdef0123456789abcdef.vectors");
    std::fs::write(stray, [1; 1000]).unwrap();
    let Fed {
        folder,
        feeder,
        index,
        ..
    } = fed;
    drop((feeder, index));
    let index = Index::open(folder.path()).unwrap();
    assert_eq!(index.watermark().unwrap(), 1);
    let mut feeder = index.feeder().unwrap().unwrap();
    let batch = Batch {
        passages: vec![passage("s", 2, "words after the crash")],
        removed: Vec::new(),
        upto: 2,
    };
    feeder.feed(batch).unwrap();
    assert_eq!(places(&index.search(&text("words")).unwrap()).len(), 2);
}

const WORDS: [&str; 12] = [
    "apple", "river", "stone", "cloud", "engine", "paper", "winter", "garden", "bridge", "signal",
    "the", "of",
];

fn story() -> impl Strategy<Value = Vec<(usize, Vec<usize>)>> {
    let text = prop::collection::vec(0..WORDS.len(), 1..8);
    prop::collection::vec((0..3_usize, text), 1..24)
}

/// A story as passages: sessions 0 and 1 begin anew, 2 is a fork of 0.
fn told(story: &[(usize, Vec<usize>)]) -> Vec<Passage> {
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn batches_make_no_difference(
        story in story(),
        sizes in prop::collection::vec(1..6_usize, 24),
        removed in prop::option::of(0..24_usize),
    ) {
        let all = told(&story);
        let removed = removed.and_then(|index| all.get(index)).map(|passage| Removal {
            owner: passage.owner.clone(),
            session: passage.session.clone(),
            seq: Some(passage.seq),
        });
        let mut whole = Fed::new();
        let mut pieces = Fed::new();
        let batch = |passages: &[Passage], removed: Option<Removal>| Batch {
            upto: passages.last().map_or(0, |last| last.position),
            passages: passages.to_vec(),
            removed: removed.into_iter().collect(),
        };
        let kept: Vec<Passage> = all
            .iter()
            .filter(|one| removed.as_ref().is_none_or(|removed| {
                (&one.session, Some(one.seq)) != (&removed.session, removed.seq)
            }))
            .cloned()
            .collect();
        whole.feeder.feed(batch(&kept, None)).unwrap();
        let mut rest = &all[..];
        for size in sizes {
            let (now, later) = rest.split_at(size.min(rest.len()));
            pieces.feeder.feed(batch(now, None)).unwrap();
            rest = later;
        }
        pieces.feeder.feed(batch(&[], removed)).unwrap();
        // Scores count words in files that wait to be rewritten, too.
        pieces.feeder.scrub().unwrap();
        whole.feeder.scrub().unwrap();
        prop_assert_eq!(whole.index.passages().unwrap(), pieces.index.passages().unwrap());
        for word in WORDS {
            let query = Query::new(word, Scope::new(owner("local")));
            let scores = |fed: &Fed| {
                let found = fed.search(&query);
                let mut scores: Vec<_> = found.hits.iter().map(|hit| {
                    let why = hit.why;
                    let parts = [why.text, why.pooled, why.late, why.session];
                    (hit.session.clone(), hit.seq, parts.map(|part| (part * 1e4).round()))
                }).collect();
                scores.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
                scores
            };
            prop_assert_eq!(scores(&whole), scores(&pieces), "{}", word);
        }
    }
}
