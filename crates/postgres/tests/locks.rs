//! A row locked by another transaction holds up only the appends that need that row.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::Duration;

use common::{append, header, named_entry, open, owner, read_log, run, session};
use throughline_model::Seq;
use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{Append, ErrorKind, Fence, LeaseStore, LogStore, Maintenance};
use tokio::time::timeout;

/// After this long, an operation counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

async fn create_sessions(store: &PostgresStore, ids: &[&str]) {
    for id in ids {
        store.create(&owner(), header(id)).await.unwrap();
        append(
            store,
            &session(id),
            named_entry(&format!("{id} first"), "hello"),
        )
        .await;
    }
}

/// Appends to other sessions while the `lock` statement holds a row of one session.
async fn assert_others_proceed(database: &TestDatabase, lock: &str) {
    let store = open(&database.url()).await;
    create_sessions(&store, &["locked", "a", "b"]).await;
    let term = Duration::from_secs(600);
    let lease = store.acquire_lease(&owner(), "locked", "me", term).await;
    let fence: Fence = lease.unwrap().fence();
    let other = database.connect().await;
    other.batch_execute("BEGIN").await.unwrap();
    assert_eq!(other.execute(lock, &[]).await.unwrap(), 1, "{lock}");

    let blocked = tokio::spawn({
        let store = store.clone();
        async move {
            let mut places = Vec::new();
            for count in 0..5 {
                let name = format!("blocked {count}");
                let new = Append {
                    fence: Some(fence.clone()),
                    ..Append::unconditional(vec![named_entry(&name, &name)])
                };
                places.push(store.append(&session("locked"), new).await.unwrap());
            }
            places
        }
    });
    let unrelated = async {
        for count in 0..50 {
            for id in ["a", "b"] {
                let name = format!("{id} {count}");
                append(&store, &session(id), named_entry(&name, &name)).await;
            }
        }
        // A session that this writer has not cached.
        create_sessions(&store, &["new"]).await;
        append(&store, &session("new"), named_entry("new", "new")).await;
    };
    timeout(HANG_TIMEOUT, unrelated)
        .await
        .expect("they wait for the lock");

    assert!(!blocked.is_finished(), "{lock}: nothing was locked");
    other.batch_execute("ROLLBACK").await.unwrap();
    let places = timeout(HANG_TIMEOUT, blocked).await.unwrap().unwrap();
    let seqs: Vec<_> = places.iter().map(|place| place.entries[0].seq).collect();
    assert_eq!(seqs, [2, 3, 4, 5, 6].map(Seq));
    let report = store.check(&|_, _| ()).await.unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_locked_head_holds_up_no_other_session() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let lock = "SELECT FROM throughline.head WHERE id = 'locked' FOR UPDATE";
    run(async { assert_others_proceed(&database, lock).await });
}

#[test]
fn a_locked_lease_holds_up_no_other_session() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let lock = "SELECT FROM throughline.lease WHERE name = 'locked' FOR UPDATE";
    run(async { assert_others_proceed(&database, lock).await });
}

#[test]
fn a_locked_row_that_only_the_database_itself_needs_holds_up_no_other_session() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let lock = "INSERT INTO throughline.entry (owner, log, seq, id, at, digest, position, payload)
        SELECT owner, log, 2, gen_random_uuid(), 0, digest, 1000000, '' FROM throughline.head
        WHERE id = 'locked'";
    run(async { assert_others_proceed(&database, lock).await });
}

#[test]
fn appends_to_a_locked_session_keep_their_order() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        create_sessions(&store, &["s"]).await;
        let other = database.connect().await;
        let lock = "BEGIN; SELECT FROM throughline.head FOR UPDATE";
        other.batch_execute(lock).await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for count in 0..20 {
            let store = store.clone();
            let name = format!("entry {count}");
            waiting.spawn(
                async move { append(&store, &session("s"), named_entry(&name, &name)).await },
            );
            // Some arrive while others are set aside.
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        other.batch_execute("COMMIT").await.unwrap();
        timeout(HANG_TIMEOUT, waiting.join_all()).await.unwrap();

        let texts: Vec<_> = read_log(&store, &session("s"))
            .await
            .unwrap()
            .into_iter()
            .collect();
        let expected: Vec<_> = (0..20).map(|count| format!("entry {count}")).collect();
        assert_eq!(texts.len(), 21);
        for (entry, expected) in texts[1..].iter().zip(expected) {
            assert!(format!("{entry:?}").contains(&expected), "{entry:?}");
        }
    });
}

#[test]
fn an_append_that_gave_up_on_a_lock_is_not_done_later() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let options = Options {
            time_limit: Duration::from_millis(700),
            ..Options::default()
        };
        let store = PostgresStore::open(&database.url(), options).await.unwrap();
        create_sessions(&store, &["s", "t"]).await;
        let other = database.connect().await;
        let lock = "BEGIN; SELECT FROM throughline.head WHERE id = 's' FOR UPDATE";
        other.batch_execute(lock).await.unwrap();

        let new = || Append::unconditional(vec![named_entry("late", "late")]);
        let to = session("s");
        let (first, second, trashed) = tokio::join!(
            store.append(&to, new()),
            store.append(
                &to,
                Append::unconditional(vec![named_entry("later", "later")])
            ),
            throughline_store::Catalog::trash(&store, &to, common::at(9)),
        );
        for refused in [
            first.unwrap_err(),
            second.unwrap_err(),
            trashed.unwrap_err(),
        ] {
            assert_eq!(refused.kind(), ErrorKind::Unavailable);
            assert!(refused.to_string().contains("was busy"), "{refused}");
        }

        other.batch_execute("COMMIT").await.unwrap();
        append(
            &store,
            &session("t"),
            named_entry("afterwards", "afterwards"),
        )
        .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let record = store.record(&session("s")).await.unwrap();
        assert_eq!(record.info.head, Seq(1));
        let appended = store.append(&session("s"), new()).await.unwrap();
        assert_eq!(appended.entries[0].seq, Seq(2));
    });
}
