//! Several processes on one index: one writes and is killed, others read throughout.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "the child process is configured through its environment"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use throughline_recall::conformance::{passage, text_query};
use throughline_recall::{Batch, FolderIndex, Index as _, Passage, Query};

const FOLDER: &str = "THROUGHLINE_RECALL_TEST_FOLDER";
const ROUNDS: u64 = 8;

/// Returns the entry at a position: two per session, so that each changes the one before.
fn entry(position: u64) -> Passage {
    let text = format!("entry number{position} of many");
    let mut entry = passage(
        &format!("s{}", position.div_ceil(2)),
        2 - position % 2,
        &text,
    );
    entry.position = position;
    entry
}

/// The child process: indexes until it is killed.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let index = FolderIndex::open(Path::new(&folder)).unwrap();
    let mut indexer = index.indexer().unwrap().unwrap();
    let mut upto = index.watermark().unwrap();
    loop {
        let passages: Vec<Passage> = (upto + 1..=upto + 3).map(entry).collect();
        let batch = Batch {
            passages,
            removed: Vec::new(),
            after: upto,
            upto: upto + 3,
            anchors: Vec::new(),
        };
        upto = indexer.index_batch(batch).unwrap();
    }
}

#[test]
fn what_was_indexed_is_whole_whenever_the_indexer_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let index = FolderIndex::open(folder.path()).unwrap();
    let mut seen = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--quiet"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(20 + 7 * round));
            seen = check_everything_is_found(&index, seen);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Check with a reader that was open all along, and with a new one.
        seen = check_everything_is_found(&index, seen);
        assert_eq!(
            check_everything_is_found(&FolderIndex::open(folder.path()).unwrap(), seen),
            seen
        );
    }
    assert!(seen > 0, "nothing was ever indexed");
    let indexer = index.indexer().unwrap();
    assert!(
        indexer.is_some(),
        "the lock is held by a process that is gone"
    );
}

/// Merging removes the files of the merged segments, including those that a reader is about to
/// open. A second open of the folder acts as another process: each has its own list of files
/// in use.
#[test]
fn a_reader_never_meets_a_file_that_was_merged_away() {
    let folder = tempfile::tempdir().unwrap();
    let index = FolderIndex::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let index = FolderIndex::open(folder.path()).unwrap();
            let mut indexer = index.indexer().unwrap().unwrap();
            for upto in 1..=600 {
                let batch = Batch {
                    passages: vec![entry(upto)],
                    after: upto - 1,
                    upto,
                    ..Batch::default()
                };
                indexer.index_batch(batch).unwrap();
            }
        });
        while !writer.is_finished() {
            index.state().unwrap();
        }
    });
    assert_eq!(check_everything_is_found(&index, 600), 600);
}

/// Checks that everything up to the watermark is found once; returns the watermark.
fn check_everything_is_found(index: &FolderIndex, at_least: u64) -> u64 {
    let query = Query {
        limit: 100_000,
        ..text_query("entry")
    };
    let found = index.search(&query).unwrap();
    assert!(found.watermark >= at_least, "the watermark went back");
    let mut all: Vec<String> = found.hits.into_iter().map(|hit| hit.text).collect();
    all.sort();
    all.dedup();
    assert!(
        all.len() as u64 >= found.watermark,
        "{} of {}",
        all.len(),
        found.watermark
    );
    for position in 1..=found.watermark {
        let text = entry(position).text;
        assert!(all.binary_search(&text).is_ok(), "{text} is missing");
    }
    found.watermark
}
