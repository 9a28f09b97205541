//! The change feed with concurrent writers: nothing is skipped, nothing is out of order.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{append, header, named_entry, open, owner, run, session};
use throughline_model::SessionId;
use throughline_postgres::test_database::TestDatabase;
use throughline_store::{Change, ChangeFeed, ChangeKind, LogStore, Position};

/// Takes a position as a writer of the store does before it commits.
const TAKE_POSITION: &str = "BEGIN;
    SELECT pg_advisory_xact_lock_shared(1414293870,
        (CASE WHEN is_called THEN last_value ELSE 0 END & 4294967295)::bit(32)::int)
        FROM throughline.feed_position;
    SELECT set_config('throughline.owners', '{local}', true);
    INSERT INTO throughline.change (position, owner, session, kind)
        VALUES (nextval('throughline.feed_position'), 'local', 'slow', 'trashed')";

fn describe_changes(changes: &[Change]) -> Vec<String> {
    let tell = |change: &Change| match &change.kind {
        ChangeKind::Appended(entry) => format!("{} {}", change.session, entry.seq),
        ChangeKind::Trashed => format!("{} trashed", change.session),
        _ => format!("{} …", change.session),
    };
    changes.iter().map(tell).collect()
}

#[test]
fn a_position_that_is_committed_late_is_not_skipped() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        store.create(&owner(), header("s")).await.unwrap();
        let start = store.last_position().await.unwrap();
        append(&store, &session("s"), named_entry("1", "before")).await;

        let slow = database.connect().await;
        slow.batch_execute(TAKE_POSITION).await.unwrap();
        append(&store, &session("s"), named_entry("2", "after")).await;
        append(&store, &session("s"), named_entry("3", "after")).await;

        let seen = store.changes(start, 10).await.unwrap();
        assert_eq!(describe_changes(&seen), ["s 1"]);
        let last = store.last_position().await.unwrap();
        assert_eq!(last, seen[0].position);
        // A reader can tell that more was acknowledged than it has seen.
        let newest = store.acknowledged_position().await.unwrap();
        assert_eq!(newest, Position(last.0 + 3));

        slow.batch_execute("COMMIT").await.unwrap();

        let later = store.changes(last, 10).await.unwrap();
        assert_eq!(describe_changes(&later), ["slow trashed", "s 2", "s 3"]);
        assert_eq!(store.acknowledged_position().await.unwrap(), newest);
        assert_eq!(store.last_position().await.unwrap(), newest);
    });
}

#[test]
fn a_writer_that_gives_up_holds_nobody_up() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        store.create(&owner(), header("s")).await.unwrap();
        let start = store.last_position().await.unwrap();
        let slow = database.connect().await;
        slow.batch_execute(TAKE_POSITION).await.unwrap();
        append(&store, &session("s"), named_entry("1", "after")).await;
        assert_eq!(store.changes(start, 10).await.unwrap(), []);

        slow.batch_execute("ROLLBACK").await.unwrap();

        let later = store.changes(start, 10).await.unwrap();
        assert_eq!(describe_changes(&later), ["s 1"]);
    });
}

/// Appends to all sessions in turn, through a separate store.
async fn append_to_all(url: String, me: usize) {
    let store = open(&url).await;
    for count in 0..40 {
        for id in ["a", "b", "c"] {
            let name = format!("{me} {count} {id}");
            append(&store, &session(id), named_entry(&name, &name)).await;
        }
    }
}

#[test]
fn whoever_follows_sees_everything_once_and_each_session_in_order() {
    const WRITERS: usize = 5;
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        for id in ["a", "b", "c"] {
            store.create(&owner(), header(id)).await.unwrap();
        }
        let writers: Vec<_> = (0..WRITERS)
            .map(|me| tokio::spawn(append_to_all(database.url(), me)))
            .collect();
        let mut seen: Vec<Change> = Vec::new();
        let expected = 3 + WRITERS * 40 * 3;
        while seen.len() < expected {
            let after = seen.last().map_or(Position(0), |last| last.position);
            seen.extend(store.changes(after, 7).await.unwrap());
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(seen, store.changes(Position(0), 10_000).await.unwrap());
        let mut heads: BTreeMap<SessionId, u64> = BTreeMap::new();
        for change in &seen {
            if let ChangeKind::Appended(entry) = &change.kind {
                let head = heads.entry(change.session.clone()).or_default();
                assert_eq!(entry.seq.0, *head + 1, "{}", change.session);
                *head += 1;
            }
        }
        assert_eq!(heads.values().sum::<u64>(), (WRITERS * 40 * 3) as u64);
    });
}

#[test]
fn a_notification_from_another_process_wakes_whoever_waits() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (here, there) = (open(&database.url()).await, open(&database.url()).await);
        there.create(&owner(), header("s")).await.unwrap();
        let mut after = here.last_position().await.unwrap();
        for count in 0..20 {
            let waiting = tokio::spawn({
                let here = here.clone();
                async move { here.wait_for_change(after).await.unwrap() }
            });
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(!waiting.is_finished(), "nothing has happened yet");
            append(
                &there,
                &session("s"),
                named_entry(&count.to_string(), "hello"),
            )
            .await;
            assert!(waiting.await.unwrap());
            let changes = here.changes(after, 10).await.unwrap();
            assert_eq!(changes.len(), 1);
            after = changes[0].position;
        }
    });
}

#[test]
fn whoever_missed_a_notification_finds_out_by_polling() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        store.create(&owner(), header("s")).await.unwrap();
        let after = store.last_position().await.unwrap();
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.wait_for_change(after).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Written directly, so that no process sends a notification.
        let other = database.connect().await;
        let silent = TAKE_POSITION.replace("'slow', 'trashed'", "'s', 'trashed'");
        other.batch_execute(&silent).await.unwrap();
        other.batch_execute("COMMIT").await.unwrap();
        assert!(waiting.await.unwrap());
        assert_eq!(store.changes(after, 10).await.unwrap().len(), 1);
    });
}
