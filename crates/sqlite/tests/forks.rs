//! Forks whose origins were removed or damaged.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{
    append, at, fill_session, findings, header, named_entry, open, read_log, run, session,
};
use rusqlite::Connection;
use throughline_model::Seq;
use throughline_sqlite::SqliteStore;
use throughline_store::{Catalog, Finding, LogStore, Maintenance, StoreError};

/// Creates a session of three entries, a fork with two more, and a fork of that with one more.
async fn create_fork_family(store: &SqliteStore) {
    let origin = fill_session(store, "origin", 3, 50).await;
    let fork = session("fork");
    store.fork(&origin, Seq(3), header("fork")).await.unwrap();
    for name in ["four", "five"] {
        append(store, &fork, named_entry(name, name)).await;
    }
    store
        .fork(&fork, Seq(5), header("grandchild"))
        .await
        .unwrap();
    append(store, &session("grandchild"), named_entry("six", "six")).await;
}

async fn remove(store: &SqliteStore, id: &str) {
    store.trash(&session(id), at(9)).await.unwrap();
    store.remove(&session(id)).await.unwrap();
}

#[test]
fn a_store_is_sound_whichever_of_a_family_is_removed_first() {
    let orders = [
        ["origin", "fork", "grandchild"],
        ["fork", "origin", "grandchild"],
        ["fork", "grandchild", "origin"],
        ["grandchild", "fork", "origin"],
    ];
    for order in orders {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        run(async {
            let store = open(&path);
            create_fork_family(&store).await;
            for (gone, id) in order.into_iter().enumerate() {
                remove(&store, id).await;
                let what = format!("{:?} removed", &order[..=gone]);
                assert_eq!(findings(&store).await, [], "{what}");
                let report = store.rebuild(&|_, _| ()).await.unwrap();
                assert_eq!(report.findings, [], "{what}, and rebuilt");
                if !order[..=gone].contains(&"grandchild") {
                    let entries = read_log(&store, &session("grandchild")).await.unwrap();
                    assert_eq!(entries.len(), 6, "{what}");
                }
            }
            let left: i64 = Connection::open(&path)
                .unwrap()
                .query_row(
                    "SELECT (SELECT count(*) FROM entry) + (SELECT count(*) FROM session)
                          + (SELECT count(*) FROM inherits) + (SELECT count(*) FROM snapshot)",
                    [],
                    |row| row.get(0),
                )
                .unwrap();
            assert_eq!(left, 0, "{order:?} leaves something behind");
        });
    }
}

#[test]
fn a_fork_of_a_log_with_a_hole_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        create_fork_family(&store).await;
        let deleted = Connection::open(&path)
            .unwrap()
            .execute(
                "DELETE FROM entry WHERE seq = 2 AND session =
                 (SELECT pk FROM session WHERE id = 'origin')",
                [],
            )
            .unwrap();
        assert_eq!(deleted, 1);

        let found = findings(&store).await;

        let hole = |finding: &&Finding| match finding {
            Finding::Entry { session, seq, .. } => (session.as_str(), *seq) == ("origin", Seq(2)),
            _ => false,
        };
        assert_eq!(found.iter().filter(hole).count(), 1, "{found:?}");
        let forked = store
            .fork(&session("origin"), Seq(2), header("new"))
            .await
            .unwrap_err();
        assert!(!matches!(forked, StoreError::Closed), "{forked}");
        let rebuilt = store.rebuild(&|_, _| ()).await;
        assert!(!matches!(rebuilt, Err(StoreError::Closed)));
        append(
            &store,
            &session("grandchild"),
            named_entry("seven", "seven"),
        )
        .await;
    });
}

#[test]
fn a_snapshot_that_is_missing_is_noticed_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        create_fork_family(&store).await;
        let deleted = Connection::open(&path)
            .unwrap()
            .execute(
                "DELETE FROM snapshot WHERE session = (SELECT pk FROM session WHERE id = 'fork')",
                [],
            )
            .unwrap();
        assert_eq!(deleted, 1);

        let found = findings(&store).await;

        let [Finding::Derived { session, .. }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(session.as_str(), "fork");
        let report = store.rebuild(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
    });
}
