//! The write-ahead log stays short.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::Path;

use common::{check, header, named_entry, open, session};
use tempfile::TempDir;
use throughline_model::SessionRef;
use throughline_sqlite::SqliteStore;
use throughline_store::{Append, LogStore, Maintenance};

/// Creates a store with a session to write to.
async fn store_with_session() -> (TempDir, SqliteStore, SessionRef) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db"));
    let to = session("s");
    store.create(&to.owner, header("s")).await.unwrap();
    (folder, store, to)
}

fn file_size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

#[tokio::test]
async fn what_was_committed_gets_into_the_file_while_the_store_is_open() {
    let (_folder, store, to) = store_with_session().await;
    for number in 0..80 {
        let new = named_entry(&format!("wide-{number}"), &"x".repeat(100_000));
        store
            .append(&to, Append::unconditional(vec![new]))
            .await
            .unwrap();
    }
    assert!(file_size(store.path()) >= 3_500_000);
    assert!(check(&store).await.findings.is_empty());
}

#[tokio::test]
async fn the_log_stays_short_though_nobody_stops_writing() {
    let (folder, store, to) = store_with_session().await;
    let log = folder.path().join("sessions.db-wal");
    let writers = (0..4).map(|writer| {
        let (store, to, log) = (store.clone(), to.clone(), log.clone());
        tokio::spawn(async move {
            let mut longest = 0;
            for number in 0..30 {
                let new = named_entry(&format!("{writer}-{number}"), &"x".repeat(1_000_000));
                store
                    .append(&to, Append::unconditional(vec![new]))
                    .await
                    .unwrap();
                longest = longest.max(file_size(&log));
            }
            longest
        })
    });
    let mut longest = 0;
    for writer in writers.collect::<Vec<_>>() {
        longest = longest.max(writer.await.unwrap());
    }
    // The writer's limit plus the largest transaction.
    assert!(longest < 50_000_000, "{longest} bytes");
    store.close().await.unwrap();
    assert_eq!(file_size(&log), 0);
}
