//! The main file is missing or empty beside a write-ahead log: the log is not discarded, and
//! its entries are recovered from it alone.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::{Path, PathBuf};

use common::sample::salvaged;
use common::{append, birth, entry, fill, findings, log, logs, open, run, session};
use rusqlite::Connection;
use throughline_model::Seq;
use throughline_sqlite::{Options, SqliteStore};
use throughline_store::{ErrorKind, LogStore, MemoryStore, StoreError, Upkeep};

/// The log of a store as a crash leaves it, in a folder of its own without the main file.
fn log_alone(folder: &Path, of: &SqliteStore) -> PathBuf {
    let lost = folder.join("lost");
    std::fs::create_dir(&lost).unwrap();
    let path = lost.join("sessions.db");
    std::fs::copy(wal(of.path()), wal(&path)).unwrap();
    path
}

fn wal(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

fn is_refused_and_kept(path: &Path) {
    let before = std::fs::read(wal(path)).unwrap();
    let length = std::fs::metadata(path).map(|file| file.len()).ok();
    let error = SqliteStore::open(path, Options::default()).unwrap_err();
    assert!(
        matches!(error, StoreError::MainFileLost { .. }),
        "{error:?}"
    );
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(std::fs::read(wal(path)).unwrap() == before, "it is kept");
    assert_eq!(std::fs::metadata(path).map(|file| file.len()).ok(), length);
}

#[test]
fn a_log_whose_main_file_is_missing_or_empty_is_not_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    run(fill(&store, "s", 3, 10));
    let path = log_alone(folder.path(), &store);
    is_refused_and_kept(&path);

    std::fs::write(&path, b"").unwrap();
    is_refused_and_kept(&path);
}

#[test]
fn a_log_without_frames_stands_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    run(fill(&store, "s", 3, 10));
    let path = log_alone(folder.path(), &store);
    let header = std::fs::read(wal(&path)).unwrap()[..32].to_vec();
    for left in [Vec::new(), header] {
        std::fs::write(wal(&path), left).unwrap();
        std::fs::write(&path, b"").unwrap();
        run(async {
            let store = open(&path);
            fill(&store, "new", 1, 10).await;
            store.close().await.unwrap();
        });
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn everything_is_recovered_from_a_log_that_has_all_pages() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = open(&folder.path().join("sessions.db"));
        fill(&store, "short", 120, 200).await;
        fill(&store, "long", 7, 9_000).await;
        store
            .fork(&session("short"), Seq(20), birth("fork"))
            .await
            .unwrap();
        append(&store, &session("fork"), entry("own", "own")).await;
        // Writes every page once.
        let connection = Connection::open(store.path()).unwrap();
        connection.execute_batch("VACUUM").unwrap();
        let path = log_alone(folder.path(), &store);
        let expected = logs(&store).await.unwrap();
        for empty in [false, true] {
            if empty {
                std::fs::write(&path, b"").unwrap();
            }
            let into = MemoryStore::default();
            let report = salvaged(&path, &into).await;
            assert!(logs(&into).await.unwrap() == expected, "{report:?}");
            assert_eq!((report.lost, report.notes), (vec![], vec![]));
            assert_eq!(report.unverified, 0);
            assert_eq!(findings(&into).await, []);
        }
    });
}

/// A store whose log was moved into the main file and then started anew, with `after`
/// appends since.
async fn started_anew(path: &Path, after: usize) -> SqliteStore {
    let store = open(path);
    fill(&store, "s", 300, 400).await;
    let moved =
        Connection::open(path)
            .unwrap()
            .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| {
                row.get::<_, i64>(0)
            });
    assert_eq!(moved, Ok(0));
    for number in 0..after {
        let new = entry(&format!("after-{number}"), "after");
        append(&store, &session("s"), new).await;
    }
    store
}

#[test]
fn what_the_end_of_the_log_still_has_of_earlier_times_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = started_anew(&folder.path().join("sessions.db"), 2).await;
        let path = log_alone(folder.path(), &store);
        let into = MemoryStore::default();

        let report = salvaged(&path, &into).await;

        let note = |part: &str| report.notes.iter().any(|note| note.contains(part));
        assert!(note("in the main file alone is lost"), "{report:?}");
        // Whose session it is was in the main file alone.
        let owner = &report.lost[0].owner;
        let kept = log(&into, &owner.session(&session("s").id)).await.unwrap();
        let expected = log(&store, &session("s")).await.unwrap();
        assert_eq!(kept.len(), 302);
        // The two that came since, and most of those before: few frames were overwritten.
        for (kept, expected) in kept[300..].iter().zip(&expected[300..]) {
            assert_eq!((kept.id, &kept.payload), (expected.id, &expected.payload));
        }
        assert!(report.entries > 250, "{report:?}");
        assert_eq!(findings(&into).await, []);
    });
}
