//! Tests that files left by a killed process never disturb the next run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::index_with;
use throughline_recall::conformance::{hit_positions, passage, text_query};
use throughline_recall::{Batch, FolderIndex, Index as _};

/// Lists the names of the segments in a folder.
fn list_segments(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("text")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut segments: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".term").map(ToOwned::to_owned))
        .collect();
    segments.sort();
    segments
}

#[test]
fn deletes_that_were_written_and_not_committed_do_not_stop_the_next_batch() {
    let (folder, fixture) = index_with(&["zero words", "one", "two", "three"]);
    drop(fixture);
    // Simulate a kill after a segment's delete file was written and before the commit that
    // names it: the next run numbers its operations from the same commit.
    for segment in list_segments(folder.path()) {
        for stamp in 0..64 {
            let name = format!("text/{segment}.{stamp}.del");
            let path = folder.path().join(name);
            if !path.exists() {
                fs::write(path, b"torn").unwrap();
            }
        }
    }
    let index = FolderIndex::open(folder.path()).unwrap();
    let mut indexer = index.indexer().unwrap().unwrap();
    let batch = Batch {
        passages: vec![
            passage("s", 2, "one, changed"),
            passage("s", 5, "four words"),
        ],
        after: index.watermark().unwrap(),
        upto: 9,
        ..Batch::default()
    };
    indexer.index_batch(batch).unwrap();
    drop(indexer);
    assert_eq!(index.passage_count().unwrap(), 5);
    let found = hit_positions(&index.search(&text_query("changed")).unwrap());
    assert_eq!(found[0], "s/2");
}

#[test]
fn merged_files_that_the_engine_has_forgotten_are_removed() {
    let (folder, fixture) = index_with(&["zero words"]);
    drop(fixture);
    let list = folder.path().join("text/.managed.json");
    let older = fs::read(&list).unwrap();
    index_one_by_one(folder.path(), 2..20);
    // A power cut restores an older list of files, but not the older commit.
    fs::write(&list, older).unwrap();
    index_one_by_one(folder.path(), 20..40);
    let index = FolderIndex::open(folder.path()).unwrap();
    assert_eq!(index.passage_count().unwrap(), 39);
    assert_eq!(index.leftovers().unwrap(), Some(Vec::new()));
}

/// Indexes one entry at a time, so that there is something to merge.
fn index_one_by_one(folder: &Path, entries: std::ops::Range<u64>) {
    let index = FolderIndex::open(folder).unwrap();
    let mut indexer = index.indexer().unwrap().unwrap();
    for seq in entries {
        let batch = Batch {
            passages: vec![passage("s", seq, "words")],
            after: index.watermark().unwrap(),
            upto: seq,
            ..Batch::default()
        };
        indexer.index_batch(batch).unwrap();
    }
    indexer.finish().unwrap();
}

#[test]
fn leftover_files_are_removed_before_indexing() {
    let (folder, fixture) = index_with(&["zero words", "one"]);
    drop(fixture);
    let stray: Vec<PathBuf> = [
        "text/0123456789abcdef0123456789abcdef.vectors",
        "text/0123456789abcdef0123456789abcdef.store.temp",
        "text/.tmpAbCdEf",
        ".tmpXyZ123",
        "about.json.new",
    ]
    .iter()
    .map(|name| folder.path().join(name))
    .collect();
    for path in &stray {
        fs::write(path, b"leftover").unwrap();
    }
    let index = FolderIndex::open(folder.path()).unwrap();
    drop(index.indexer().unwrap().unwrap());
    for path in &stray {
        assert!(!path.exists(), "{} is still there", path.display());
    }
    assert_eq!(index.passage_count().unwrap(), 2);
}
