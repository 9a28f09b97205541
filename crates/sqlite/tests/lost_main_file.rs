//! The main file is missing or empty beside a write-ahead log: the log is not discarded, and
//! its entries are recovered from it alone.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::{Path, PathBuf};

use common::sample::run_salvage;
use common::{
    append, fill_session, findings, header, logs, named_entry, open, read_log, run, session,
};
use rusqlite::Connection;
use throughline_model::Seq;
use throughline_sqlite::{Options, SqliteStore};
use throughline_store::{ErrorKind, LogStore, Maintenance, MemoryStore, StoreError};

/// Copies the log of a store as a crash leaves it, without the main file.
fn copy_wal_alone(folder: &Path, of: &SqliteStore) -> PathBuf {
    let lost = folder.join("lost");
    std::fs::create_dir(&lost).unwrap();
    let path = lost.join("sessions.db");
    std::fs::copy(wal_path(of.path()), wal_path(&path)).unwrap();
    path
}

fn wal_path(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

fn assert_refused_and_kept(path: &Path) {
    let before = std::fs::read(wal_path(path)).unwrap();
    let length = std::fs::metadata(path).map(|file| file.len()).ok();
    let error = SqliteStore::open(path, Options::default()).unwrap_err();
    assert!(
        matches!(error, StoreError::MainFileLost { .. }),
        "{error:?}"
    );
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(
        std::fs::read(wal_path(path)).unwrap() == before,
        "the log is unchanged"
    );
    assert_eq!(std::fs::metadata(path).map(|file| file.len()).ok(), length);
}

#[test]
fn a_log_whose_main_file_is_missing_or_empty_is_not_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    run(fill_session(&store, "s", 3, 10));
    let path = copy_wal_alone(folder.path(), &store);
    assert_refused_and_kept(&path);

    std::fs::write(&path, b"").unwrap();
    assert_refused_and_kept(&path);
}

#[test]
fn a_log_without_frames_stands_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    run(fill_session(&store, "s", 3, 10));
    let path = copy_wal_alone(folder.path(), &store);
    let header = std::fs::read(wal_path(&path)).unwrap()[..32].to_vec();
    for left in [Vec::new(), header] {
        std::fs::write(wal_path(&path), left).unwrap();
        std::fs::write(&path, b"").unwrap();
        run(async {
            let store = open(&path);
            fill_session(&store, "new", 1, 10).await;
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
        fill_session(&store, "short", 120, 200).await;
        fill_session(&store, "long", 7, 9_000).await;
        store
            .fork(&session("short"), Seq(20), header("fork"))
            .await
            .unwrap();
        append(&store, &session("fork"), named_entry("own", "own")).await;
        // Writes every page once.
        let connection = Connection::open(store.path()).unwrap();
        connection.execute_batch("VACUUM").unwrap();
        let path = copy_wal_alone(folder.path(), &store);
        let expected = logs(&store).await.unwrap();
        for empty in [false, true] {
            if empty {
                std::fs::write(&path, b"").unwrap();
            }
            let into = MemoryStore::default();
            let report = run_salvage(&path, &into).await;
            assert!(logs(&into).await.unwrap() == expected, "{report:?}");
            assert_eq!((report.lost, report.notes), (vec![], vec![]));
            assert_eq!(report.unverified, 0);
            assert_eq!(findings(&into).await, []);
        }
    });
}

/// Creates a store whose log was checkpointed and restarted, with `after` appends since.
async fn store_with_restarted_wal(path: &Path, after: usize) -> SqliteStore {
    let store = open(path);
    fill_session(&store, "s", 300, 400).await;
    let moved =
        Connection::open(path)
            .unwrap()
            .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| {
                row.get::<_, i64>(0)
            });
    assert_eq!(moved, Ok(0));
    for number in 0..after {
        let new = named_entry(&format!("after-{number}"), "after");
        append(&store, &session("s"), new).await;
    }
    store
}

#[test]
fn what_the_end_of_the_log_still_has_of_earlier_times_is_recovered() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let store = store_with_restarted_wal(&folder.path().join("sessions.db"), 2).await;
        let path = copy_wal_alone(folder.path(), &store);
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        let note = |part: &str| report.notes.iter().any(|note| note.contains(part));
        assert!(note("stored only in the main file is lost"), "{report:?}");
        // The session's owner was stored only in the main file.
        let owner = &report.lost[0].owner;
        let recovered = read_log(&into, &owner.session(&session("s").id))
            .await
            .unwrap();
        let expected = read_log(&store, &session("s")).await.unwrap();
        assert_eq!(recovered.len(), 302);
        // The two appended since, and most of those before: few frames were overwritten.
        for (recovered, expected) in recovered[300..].iter().zip(&expected[300..]) {
            assert_eq!(
                (recovered.id, &recovered.payload),
                (expected.id, &expected.payload)
            );
        }
        assert!(report.entries > 250, "{report:?}");
        assert_eq!(findings(&into).await, []);
    });
}
