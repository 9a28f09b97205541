//! Tests of stores that moved back in time: a search finds only what the store contains now.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use throughline::recall::Mode;
use throughline::{
    IndexRebuild, IndexWait, Message, NewSession, PurgeOptions, Role, SearchOptions, Seq,
    Throughline,
};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

async fn open(folder: &Path) -> Throughline {
    let store = format!("sqlite:{}", folder.join("sessions.db").display());
    Throughline::open(&store).await.unwrap()
}

async fn search(tl: &Throughline, typed: &str) -> Vec<String> {
    let options = SearchOptions {
        query: typed,
        mode: Mode::Text,
        limit: 100,
        typing: false,
        project: None,
        listing: &[],
        zone: &TimeZone::UTC,
        index_wait: IndexWait::Unlimited,
    };
    let results = tl.search(&options).await.unwrap();
    let hits = results.found.hits.into_iter();
    let mut found: Vec<String> = hits.map(|hit| hit.text).collect();
    found.sort();
    found
}

async fn append_messages(tl: &Throughline, name: &str, texts: &[&str]) {
    let session = tl.create(NewSession::named(name).unwrap()).await.unwrap();
    for text in texts {
        let message = Message::text(Role::User, *text);
        session.append(message).await.unwrap();
    }
}

fn store_file(folder: &Path, suffix: &str) -> std::path::PathBuf {
    folder.join(format!("sessions.db{suffix}"))
}

/// Replaces a store's file by an older one.
fn restore_older_file(folder: &Path, older: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(store_file(folder, suffix));
    }
    fs::copy(older, store_file(folder, "")).unwrap();
}

#[test]
fn after_an_older_file_is_restored_only_its_content_is_found() {
    // With fewer, as many and more entries after the restore than the index had.
    for later in [0, 1, 2, 3, 4, 5, 20] {
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("backup.db");
        block_on(async {
            let tl = open(folder.path()).await;
            append_messages(&tl, "one", &["heron before the backup"]).await;
            assert_eq!(search(&tl, "heron").await.len(), 1);
            tl.backup(&backup, &|_, _| {}).await.unwrap();
            append_messages(&tl, "two", &["heron that is lost", "heron that is erased"]).await;
            let two = tl.resolve(&"two".parse().unwrap(), &[]).await.unwrap();
            two.erase(&[Seq(2)], None).await.unwrap();
            assert_eq!(search(&tl, "heron").await.len(), 2);
            tl.close().await.unwrap();

            restore_older_file(folder.path(), &backup);
            let tl = open(folder.path()).await;
            let mut expected = vec!["heron before the backup".to_owned()];
            let texts: Vec<String> = (0..later).map(|at| format!("heron after {at}")).collect();
            if later > 0 {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                append_messages(&tl, "three", &texts).await;
            }
            expected.extend(texts);
            expected.sort();
            assert_eq!(search(&tl, "heron").await, expected, "{later} later");
            assert_eq!(tl.take_index_rebuild(), Some(IndexRebuild::Mismatch));
            // Only once: the index matches from then on.
            assert_eq!(search(&tl, "heron").await, expected);
            assert_eq!(tl.take_index_rebuild(), None);
        });
    }
}

#[test]
fn after_the_write_ahead_log_is_lost_only_the_rest_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    block_on(async {
        let tl = open(folder.path()).await;
        append_messages(&tl, "one", &["heron in the file"]).await;
        tl.close().await.unwrap();
        let tl = open(folder.path()).await;
        fs::copy(store_file(folder.path(), ""), &copy).unwrap();
        append_messages(&tl, "two", &["heron in the log"]).await;
        assert_eq!(search(&tl, "heron").await.len(), 2);
        tl.close().await.unwrap();
        restore_older_file(folder.path(), &copy);
        let tl = open(folder.path()).await;
        append_messages(&tl, "three", &["crane instead"]).await;
        assert_eq!(search(&tl, "heron").await, ["heron in the file"]);
        assert_eq!(search(&tl, "crane").await[..], ["crane instead"]);
    });
}

#[test]
fn erasing_and_removing_does_not_cause_a_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    block_on(async {
        for name in ["one", "two", "three"] {
            let tl = open(folder.path()).await;
            append_messages(&tl, name, &["a heron", "another heron", "a third heron"]).await;
            search(&tl, "heron").await;
            let session = tl.resolve(&name.parse().unwrap(), &[]).await.unwrap();
            session.erase(&[Seq(3)], None).await.unwrap();
            if name == "two" {
                tl.trash(session.id()).await.unwrap();
                let all = PurgeOptions {
                    grace: Some(SignedDuration::ZERO),
                    ..PurgeOptions::default()
                };
                tl.purge(all).await.unwrap();
            }
            tl.close().await.unwrap();
            let tl = open(folder.path()).await;
            search(&tl, "heron").await;
            assert_eq!(tl.take_index_rebuild(), None, "{name}");
            tl.close().await.unwrap();
        }
    });
}
