//! Optimistic appends whose assumptions turn out to be wrong.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{append, at, header, named_entry, open, owner, run, session};
use throughline_model::{Entry, Seq};
use throughline_postgres::PostgresStore;
use throughline_postgres::test_database::TestDatabase;
use throughline_store::{
    Append, AppendKind, Catalog, ChangeFeed, LogStore, Maintenance, ReadRange, StoreError,
};

/// Two stores on one database; the first has appended these texts to a session and cached
/// it.
async fn open_servers(database: &TestDatabase, texts: &[&str]) -> (PostgresStore, PostgresStore) {
    let (one, other) = (open(&database.url()).await, open(&database.url()).await);
    one.create(&owner(), header("s")).await.unwrap();
    for (number, text) in (1..).zip(texts) {
        append(&one, &session("s"), named_entry(&format!("{number}"), text)).await;
    }
    (one, other)
}

/// Reads the texts of a session.
async fn read_texts(store: &PostgresStore, name: &str) -> Vec<String> {
    let entries = store
        .read(&session(name), ReadRange::starting_at(Seq(1), 100))
        .await
        .unwrap();
    let texts = entries.iter().filter_map(Entry::message);
    texts
        .map(|message| message.content.to_text().into_owned())
        .collect()
}

#[test]
fn what_another_server_appended_meanwhile_stays() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (one, other) = open_servers(&database, &["one", "two"]).await;

        append(&other, &session("s"), named_entry("3", "three")).await;
        append(&one, &session("s"), named_entry("4", "four")).await;
        append(&other, &session("s"), named_entry("5", "five")).await;

        assert_eq!(
            read_texts(&one, "s").await,
            ["one", "two", "three", "four", "five"]
        );
        let report = one.check(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
    });
}

#[test]
fn an_append_at_a_head_that_another_server_moved_is_refused() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (one, other) = open_servers(&database, &["one", "two"]).await;
        append(&other, &session("s"), named_entry("3", "three")).await;

        let late = Append::after(Seq(2), vec![named_entry("4", "late")]);
        let refused = one.append(&session("s"), late).await.unwrap_err();

        let moved = matches!(refused, StoreError::Moved { found: Seq(3), .. });
        assert!(moved, "{refused}");
        assert_eq!(read_texts(&one, "s").await, ["one", "two", "three"]);
    });
}

#[test]
fn an_append_that_another_server_made_is_a_repeat() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (one, other) = open_servers(&database, &["one"]).await;
        let again = || Append::unconditional(vec![named_entry("2", "two")]);
        other.append(&session("s"), again()).await.unwrap();

        let appended = one.append(&session("s"), again()).await.unwrap();

        assert_eq!(appended.kind, AppendKind::Repeated);
        assert_eq!(read_texts(&one, "s").await, ["one", "two"]);
    });
}

#[test]
fn a_session_that_another_server_trashed_takes_nothing() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (one, other) = open_servers(&database, &["one", "two"]).await;
        other.trash(&session("s"), at(9)).await.unwrap();

        let late = Append::unconditional(vec![named_entry("3", "late")]);
        let refused = one.append(&session("s"), late).await.unwrap_err();

        assert!(matches!(refused, StoreError::InTrash(_)), "{refused}");
    });
}

#[test]
fn one_that_is_refused_keeps_nobody_else_in_its_batch_from_being_appended() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (one, other) = (open(&database.url()).await, open(&database.url()).await);
        for name in ["a", "b", "c"] {
            one.create(&owner(), header(name)).await.unwrap();
            append(
                &one,
                &session(name),
                named_entry(&format!("{name}1"), "first"),
            )
            .await;
        }
        let start = one.last_position().await.unwrap();
        append(&other, &session("b"), named_entry("b2", "other")).await;

        let second = |name: &str, expect| {
            let new = vec![named_entry(&format!("{name}-late"), "second")];
            let session = session(name);
            let one = &one;
            async move { one.append(&session, Append::after(Seq(expect), new)).await }
        };
        let (a, b, c) = tokio::join!(second("a", 1), second("b", 1), second("c", 1));

        assert!(a.is_ok() && c.is_ok(), "{a:?} {c:?}");
        assert!(matches!(b, Err(StoreError::Moved { .. })), "{b:?}");
        assert_eq!(read_texts(&one, "b").await, ["first", "other"]);
        let changes = one.changes(start, 10).await.unwrap();
        assert_eq!(changes.len(), 3, "{changes:?}");
    });
}
