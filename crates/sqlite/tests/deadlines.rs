//! Writes that wait: each is answered by its deadline, and none is performed after it was
//! answered with an error.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{append, check, header, named_entry, open, read_log, run, session};
use throughline_sqlite::{Options, SqliteStore};
use throughline_store::{Append, ErrorKind, LogStore, StoreError};

fn open_with_short_timeout(path: &Path) -> SqliteStore {
    let options = Options {
        write_timeout: Duration::from_millis(300),
        ..Options::default()
    };
    SqliteStore::open(path, options).unwrap()
}

/// Blocks other writers until it is dropped.
fn lock_for_writing(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

/// Creates a session in a store whose writer has started.
async fn create_session(store: &SqliteStore) {
    store
        .create(&session("s").owner, header("s"))
        .await
        .unwrap();
}

/// Returns the ids in the log once everything queued has run.
async fn append_and_list_ids(path: &Path, store: &SqliteStore) -> Vec<String> {
    append(store, &session("s"), named_entry("last", "last")).await;
    // The writer ran everything that was queued before this.
    append(&open(path), &session("s"), named_entry("end", "end")).await;
    let log = read_log(store, &session("s")).await.unwrap();
    log.iter().map(|entry| entry.id.to_string()).collect()
}

#[test]
fn writes_that_were_answered_with_an_error_are_not_done_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open_with_short_timeout(&path);
        create_session(&store).await;
        let lock = lock_for_writing(&path);
        let waiting: Vec<_> = (0..24)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    let new = vec![named_entry(&format!("waiting-{n}"), "x")];
                    store
                        .append(&session("s"), Append::unconditional(new))
                        .await
                })
            })
            .collect();
        for answer in waiting {
            let error = answer.await.unwrap().unwrap_err();
            assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        }
        drop(lock);
        assert_eq!(append_and_list_ids(&path, &store).await.len(), 2);
        assert_eq!(check(&store).await.findings, []);
    });
}

#[test]
fn a_write_whose_caller_has_given_up_is_not_done_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        create_session(&store).await;
        let lock = lock_for_writing(&path);
        for n in 0..24 {
            let store = store.clone();
            let waiting = tokio::spawn(async move {
                let new = vec![named_entry(&format!("given-up-{n}"), "x")];
                store
                    .append(&session("s"), Append::unconditional(new))
                    .await
            });
            // It is submitted, and then its future is dropped.
            tokio::task::yield_now().await;
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
        }
        drop(lock);
        assert_eq!(append_and_list_ids(&path, &store).await.len(), 2);
    });
}
