//! Every append has one deadline, and its answer states the outcome.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::Duration;

use common::{append, header, named_entry, open, owner, run, session, start_fault_proxy};
use throughline_model::Seq;
use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{Append, AppendKind, ErrorKind, LogStore, Maintenance, StoreError};
use tokio::time::timeout;

async fn open_with_limit(url: &str, patience: Duration) -> PostgresStore {
    let options = Options {
        time_limit: patience,
        ..Options::default()
    };
    PostgresStore::open(url, options).await.unwrap()
}

fn one_entry(name: &str) -> Append {
    Append::unconditional(vec![named_entry(name, name)])
}

fn is_unknown(refused: &StoreError) -> bool {
    matches!(refused, StoreError::OutcomeUnknown { .. })
}

#[test]
fn appends_to_an_unavailable_database_share_the_wait_and_are_not_done_later() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let limit = Duration::from_secs(2);
        let (url, between) = start_fault_proxy(&database);
        between.cut_commits(false);
        let store = open_with_limit(&url, limit).await;
        for id in ["a", "b"] {
            store.create(&owner(), header(id)).await.unwrap();
            append(&store, &session(id), named_entry(id, id)).await;
        }
        between.refuse_connections(true);
        between.close_connections();

        let mut waiting = tokio::task::JoinSet::new();
        for count in 0..24 {
            let store = store.clone();
            let to = session(["a", "b"][count % 2]);
            waiting.spawn(async move { store.append(&to, one_entry(&format!("{count}"))).await });
        }
        // One after another they would take 24 times the limit.
        let refused = timeout(limit * 8, waiting.join_all()).await;
        for refused in refused.expect("they are retried one by one") {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unavailable);
            assert!(!is_unknown(&refused), "{refused}");
        }

        between.refuse_connections(false);
        append(
            &store,
            &session("a"),
            named_entry("afterwards", "afterwards"),
        )
        .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let direct = open(&database.url()).await;
        for (id, head) in [("a", Seq(2)), ("b", Seq(1))] {
            let record = direct.record(&session(id)).await.unwrap();
            assert_eq!(record.info.head, head, "{id}");
        }
    });
}

#[test]
fn a_commit_whose_answer_is_lost_for_good_is_said_to_be_unknown_and_can_be_repeated() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (url, between) = start_fault_proxy(&database);
        between.cut_commits(false);
        let store = open_with_limit(&url, Duration::from_millis(500)).await;
        for id in ["a", "b"] {
            store.create(&owner(), header(id)).await.unwrap();
        }
        let mut stored = 0;
        // The first append to a session takes two round trips; later ones take one
        // statement.
        for (count, id) in ["a", "b", "a", "b", "a"].into_iter().enumerate() {
            let name = format!("{id} {count}");
            // Reads end with a commit too, which is not awaited.
            tokio::time::sleep(Duration::from_millis(100)).await;
            between.lose_next_commit();

            let unknown = store
                .append(&session(id), one_entry(&name))
                .await
                .unwrap_err();

            assert!(is_unknown(&unknown), "{unknown}");
            assert_eq!(unknown.kind(), ErrorKind::Unavailable);
            between.refuse_connections(false);
            let repeated = store.append(&session(id), one_entry(&name)).await.unwrap();
            stored += usize::from(repeated.kind == AppendKind::Repeated);
            // Fills the cache, so that the next append takes the optimistic path.
            append(
                &store,
                &session(id),
                named_entry(&format!("{name} next"), "next"),
            )
            .await;
        }
        between.lose_next_commit();
        let unknown = store.create(&owner(), header("c")).await.unwrap_err();
        assert!(is_unknown(&unknown), "{unknown}");
        between.refuse_connections(false);
        store.create(&owner(), header("c")).await.unwrap();

        assert!(stored > 0, "no commit took place whose answer was lost");
        let direct = open(&database.url()).await;
        let head = direct.record(&session("a")).await.unwrap().info.head;
        assert_eq!(head, Seq(6));
        let report = direct.check(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
    });
}

#[test]
fn a_database_that_hangs_is_not_waited_for_past_the_deadline() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let (url, between) = start_fault_proxy(&database);
        between.cut_commits(false);
        let store = open_with_limit(&url, Duration::from_millis(500)).await;
        for id in ["asked", "foreseen"] {
            store.create(&owner(), header(id)).await.unwrap();
        }
        // Twice: the statement that commits by itself is prepared with the second.
        for name in ["first", "second"] {
            append(&store, &session("foreseen"), named_entry(name, name)).await;
        }
        between.hold_responses(true);

        // One statement that commits by itself: the database received it.
        let hangs = Duration::from_secs(60);
        let (asked, foreseen) = (session("asked"), session("foreseen"));
        let unknown = timeout(hangs, store.append(&foreseen, one_entry("sent")));
        let unknown = unknown.await.expect("it hangs").unwrap_err();
        assert!(is_unknown(&unknown), "{unknown}");
        // This one takes two round trips, and never reaches its commit.
        let refused = timeout(hangs, store.append(&asked, one_entry("not sent")));
        let refused = refused.await.expect("it hangs").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        assert!(!is_unknown(&refused), "{refused}");

        between.hold_responses(false);
        let direct = open(&database.url()).await;
        let head = direct.record(&session("asked")).await.unwrap().info.head;
        assert_eq!(head, Seq(0));
        let repeated = store.append(&session("foreseen"), one_entry("sent")).await;
        assert_eq!(repeated.unwrap().kind, AppendKind::Repeated);
        append(&store, &session("asked"), named_entry("again", "again")).await;
    });
}
