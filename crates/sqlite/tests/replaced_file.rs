//! The file is deleted or replaced under an open store: no lost write is acknowledged, and no
//! stale data is read.

#![allow(clippy::unwrap_used, reason = "a test")]
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};

use common::{append, fill_session, header, named_entry, open, read_log, run, session};
use throughline_sqlite::SqliteStore;
use throughline_store::{Append, ErrorKind, LogStore, Maintenance, StoreError};

/// Opens a store with a session of three entries.
fn open_filled(folder: &Path) -> (PathBuf, SqliteStore) {
    let path = folder.join("sessions.db");
    let store = open(&path);
    run(fill_session(&store, "s", 3, 10));
    (path, store)
}

async fn assert_writes_refused(store: &SqliteStore) {
    let new = Append::unconditional(vec![named_entry("late", "late")]);
    let refusals = [
        store.append(&session("s"), new).await.unwrap_err(),
        store
            .create(&session("t").owner, header("t"))
            .await
            .unwrap_err(),
    ];
    for error in refusals {
        assert!(
            matches!(error, StoreError::FileReplaced { .. }),
            "{error:?}"
        );
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("sessions.db"), "{error}");
    }
}

async fn assert_reads_refused(store: &SqliteStore) {
    let error = read_log(store, &session("s")).await.unwrap_err();
    assert!(
        matches!(error, StoreError::FileReplaced { .. }),
        "{error:?}"
    );
}

#[test]
fn a_deleted_file_is_written_and_read_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = open_filled(folder.path());
    std::fs::remove_file(&path).unwrap();
    run(async {
        assert_writes_refused(&store).await;
        assert_reads_refused(&store).await;
    });
}

#[test]
fn a_replaced_file_is_not_mistaken_for_the_one_that_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = open_filled(folder.path());
    let aside = folder.path().join("aside");
    std::fs::rename(&path, &aside).unwrap();
    std::fs::copy(&aside, &path).unwrap();
    run(async {
        assert_writes_refused(&store).await;
        assert_reads_refused(&store).await;
    });

    std::fs::rename(&aside, &path).unwrap();
    run(async {
        let seq = append(&store, &session("s"), named_entry("again", "again")).await;
        assert_eq!(seq.0, 4);
        assert_eq!(read_log(&store, &session("s")).await.unwrap().len(), 4);
    });
}

#[test]
fn a_store_that_has_not_written_yet_does_not_begin_to_in_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, first) = open_filled(folder.path());
    run(first.close()).unwrap();
    let store = open(&path);
    std::fs::rename(&path, folder.path().join("aside")).unwrap();
    drop(open(&path));
    run(async {
        assert_writes_refused(&store).await;
        assert_reads_refused(&store).await;
    });
}

#[test]
fn nothing_is_written_to_a_log_that_was_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = open_filled(folder.path());
    std::fs::remove_file(path.with_file_name("sessions.db-wal")).unwrap();
    run(assert_writes_refused(&store));
}
