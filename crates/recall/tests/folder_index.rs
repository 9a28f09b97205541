//! Tests of the folder index: one writing process for many readers, crashes and damage.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::index_with;
use throughline_recall::conformance::{hit_positions, passage, session_passages, text_query};
use throughline_recall::{Batch, ErrorKind, FolderIndex, Index as _, RecallError};

#[test]
fn one_indexes_and_all_read() {
    let (folder, mut fixture) = index_with(&["first words"]);
    let other = FolderIndex::open(folder.path()).unwrap();
    assert!(other.indexer().unwrap().is_none());
    assert_eq!(other.watermark().unwrap(), 1);
    fixture.index_passages(session_passages("t", &["second words"]));
    assert_eq!(other.watermark().unwrap(), 2);
    assert_eq!(
        hit_positions(&other.search(&text_query("second")).unwrap())[0],
        "t/1"
    );
    drop(fixture.indexer);
    let mut next = other.indexer().unwrap().unwrap();
    let batch = Batch {
        passages: session_passages("u", &["third words"]),
        removed: Vec::new(),
        after: 2,
        upto: 3,
        anchors: Vec::new(),
    };
    next.index_batch(batch).unwrap();
    assert_eq!(fixture.index.watermark().unwrap(), 3);
}

#[test]
fn what_is_erased_is_off_the_disk() {
    let (folder, mut fixture) = index_with(&[
        "zero",
        "one",
        "the password is hunter2",
        "three",
        "four",
        "five",
    ]);
    assert!(is_anywhere_on_disk(folder.path(), b"hunter2"));
    fixture.remove("s", Some(3));
    fixture.indexer.vacuum().unwrap();
    assert!(!is_anywhere_on_disk(folder.path(), b"hunter2"));
}

fn is_anywhere_on_disk(folder: &std::path::Path, what: &[u8]) -> bool {
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
fn an_index_of_another_version_is_stale_and_can_be_cleared() {
    let (folder, fixture) = index_with(&["words"]);
    let about = folder.path().join("about.json");
    std::fs::write(&about, r#"{"format":0,"model":"other"}"#).unwrap();
    let error = FolderIndex::open(folder.path()).unwrap_err();
    assert!(matches!(error, RecallError::Stale { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Rebuild);
    let busy = FolderIndex::clear(folder.path()).unwrap_err();
    assert!(matches!(busy, RecallError::Busy(_)));
    drop(fixture);
    FolderIndex::clear(folder.path()).unwrap();
    let index = FolderIndex::open(folder.path()).unwrap();
    assert_eq!(index.watermark().unwrap(), 0);
    assert_eq!(index.passage_count().unwrap(), 0);
}

#[test]
fn a_damaged_folder_says_that_it_can_be_built_again() {
    let (folder, fixture) = index_with(&["words"]);
    drop(fixture);
    std::fs::write(folder.path().join("text/meta.json"), "{").unwrap();
    let error = FolderIndex::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rebuild, "{error}");
    FolderIndex::clear(folder.path()).unwrap();
    FolderIndex::open(folder.path()).unwrap();
}

#[test]
fn what_was_not_committed_is_not_there_after_a_crash() {
    let (folder, fixture) = index_with(&["durable words"]);
    // A crash during indexing leaves files that belong to no commit.
    let stray = folder
        .path()
        .join("text/0123456789abcdef0123456789abcdef.vectors");
    std::fs::write(stray, [1; 1000]).unwrap();
    drop(fixture);
    let index = FolderIndex::open(folder.path()).unwrap();
    assert_eq!(index.watermark().unwrap(), 1);
    let mut indexer = index.indexer().unwrap().unwrap();
    let batch = Batch {
        passages: vec![passage("s", 2, "words after the crash")],
        removed: Vec::new(),
        after: 1,
        upto: 2,
        anchors: Vec::new(),
    };
    indexer.index_batch(batch).unwrap();
    assert_eq!(
        hit_positions(&index.search(&text_query("words")).unwrap()).len(),
        2
    );
}
