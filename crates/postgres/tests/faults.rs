//! Lost connections: no entry is lost and none is duplicated.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::time::Duration;

use common::{append, header, named_entry, open, owner, read_log, run, session, start_fault_proxy};
use throughline_model::Seq;
use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{
    Append, AppendKind, ChangeFeed, ChangeKind, ErrorKind, LogStore, Maintenance, Position,
};

#[test]
fn a_connection_cut_in_the_middle_of_a_commit_doubles_nothing() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let direct = open(&database.url()).await;
        for id in ["a", "b"] {
            direct.create(&owner(), header(id)).await.unwrap();
        }
        let (url, proxy) = start_fault_proxy(&database);
        let store = open(&url).await;
        let mut expected = Seq::ZERO;
        for count in 0..24 {
            for id in ["a", "b"] {
                let name = format!("{id} {count}");
                let new = vec![
                    named_entry(&name, &name),
                    named_entry(&format!("{name}, again"), &name),
                ];
                let head = Append::after(expected, new);
                let appended = store.append(&session(id), head).await.unwrap();
                // Whether or not the first attempt was committed, this is the outcome.
                assert_eq!(appended.kind, AppendKind::Appended, "{name}");
                assert_eq!(appended.entries[0].seq, expected.next(), "{name}");
            }
            expected = Seq(expected.0 + 2);
        }
        assert!(proxy.cuts() >= 10, "{proxy:?}");
        for id in ["a", "b"] {
            assert_eq!(read_log(&direct, &session(id)).await.unwrap().len(), 48);
        }
        let report = direct.check(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
    });
}

#[test]
fn whatever_changes_sessions_survives_a_lost_connection_too() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        use throughline_store::Catalog as _;
        let (url, proxy) = start_fault_proxy(&database);
        let store = open(&url).await;
        for count in 0..8 {
            let id = format!("s{count}");
            store.create(&owner(), header(&id)).await.unwrap();
            append(&store, &session(&id), named_entry(&id, "hello")).await;
            let fork = header(&format!("fork{count}"));
            store.fork(&session(&id), Seq(1), fork).await.unwrap();
            store.trash(&session(&id), common::at(9)).await.unwrap();
            store.restore(&session(&id)).await.unwrap();
            store.trash(&session(&id), common::at(9)).await.unwrap();
            store.remove(&session(&id)).await.unwrap();
        }
        assert!(proxy.cuts() >= 10, "{proxy:?}");
        let direct = open(&database.url()).await;
        let report = direct.check(&|_, _| ()).await.unwrap();
        assert_eq!((report.findings.len(), report.sessions), (0, 8));
        let changes = direct.changes(Position(0), 1_000).await.unwrap();
        let removed = changes
            .iter()
            .filter(|c| c.kind == ChangeKind::Removed)
            .count();
        assert_eq!(removed, 8);
    });
}

#[test]
fn connections_that_are_all_ended_under_load_cost_nobody_anything() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let store = open(&database.url()).await;
        for id in ["a", "b", "c"] {
            store.create(&owner(), header(id)).await.unwrap();
        }
        let ending = tokio::spawn({
            let admin = database.connect().await;
            async move {
                for _ in 0..12 {
                    tokio::time::sleep(Duration::from_millis(25)).await;
                    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                        WHERE datname = current_database() AND pid <> pg_backend_pid()";
                    admin.query(end, &[]).await.unwrap();
                }
            }
        });
        let write = async |id: &str| {
            for count in 0..60 {
                let name = format!("{id} {count}");
                let seq = append(&store, &session(id), named_entry(&name, &name)).await;
                assert_eq!(seq, Seq(count + 1));
                store.record(&session(id)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(4)).await;
            }
        };
        tokio::join!(write("a"), write("b"), write("c"));
        ending.await.unwrap();
        for id in ["a", "b", "c"] {
            assert_eq!(read_log(&store, &session(id)).await.unwrap().len(), 60);
        }
        let report = store.check(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
    });
}

#[test]
fn when_all_connections_are_in_use_it_is_said_and_passes() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let options = Options {
            connections: 1,
            pool_timeout: Duration::from_millis(100),
            time_limit: Duration::ZERO,
            ..Options::default()
        };
        let store = PostgresStore::open(&database.url(), options).await.unwrap();
        store.create(&owner(), header("s")).await.unwrap();
        let other = database.connect().await;
        let block = "BEGIN; LOCK TABLE throughline.session IN ACCESS EXCLUSIVE MODE";
        other.batch_execute(block).await.unwrap();
        let first = tokio::spawn({
            let store = store.clone();
            async move { store.record(&session("s")).await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;

        let second = store.record(&session("s")).await.unwrap_err();

        assert_eq!(second.kind(), ErrorKind::Unavailable);
        assert!(second.to_string().contains("busy"), "{second}");
        other.batch_execute("COMMIT").await.unwrap();
        first.await.unwrap().unwrap();
        store.record(&session("s")).await.unwrap();
    });
}

#[test]
fn a_transaction_whose_begin_failed_writes_nothing() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        use throughline_store::{Catalog as _, LeaseStore as _};
        let options = Options {
            time_limit: Duration::from_millis(200),
            ..Options::default()
        };
        let (url, proxy) = start_fault_proxy(&database);
        proxy.cut_commits(false);
        let store = PostgresStore::open(&url, options).await.unwrap();
        let direct = open(&database.url()).await;
        for id in ["s", "t", "u"] {
            direct.create(&owner(), header(id)).await.unwrap();
        }
        direct.trash(&session("t"), common::at(9)).await.unwrap();
        let term = Duration::from_secs(60);
        let held = direct
            .acquire_lease(&owner(), "held", "me", term)
            .await
            .unwrap();
        proxy.fail_begins(true);

        let one = || Append::unconditional(vec![named_entry("one", "hello")]);
        let refused = [
            store.create(&owner(), header("new")).await.err(),
            store.append(&session("s"), one()).await.err(),
            store
                .fork(&session("s"), Seq(0), header("fork"))
                .await
                .err(),
            store.trash(&session("u"), common::at(9)).await.err(),
            store.remove(&session("t")).await.err(),
            store.acquire_lease(&owner(), "new", "me", term).await.err(),
            store.release_lease(&held).await.err(),
            store.record(&session("s")).await.err(),
        ];
        proxy.fail_begins(false);

        for (place, refused) in refused.iter().enumerate() {
            assert!(refused.is_some(), "call {place} was answered");
        }
        let absent = |found: throughline_store::StoreError| found.kind() == ErrorKind::NotFound;
        assert!(absent(direct.record(&session("new")).await.unwrap_err()));
        assert!(absent(direct.record(&session("fork")).await.unwrap_err()));
        assert_eq!(
            direct.record(&session("s")).await.unwrap().info.head,
            Seq(0)
        );
        direct.record(&session("u")).await.unwrap();
        direct.restore(&session("t")).await.unwrap();
        direct
            .acquire_lease(&owner(), "new", "you", term)
            .await
            .unwrap();
        direct
            .acquire_lease(&owner(), "held", "you", term)
            .await
            .unwrap_err();
        let report = direct.check(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
        // The connections remain usable.
        store.append(&session("s"), one()).await.unwrap();
    });
}

#[test]
fn a_database_that_stays_unavailable_is_an_error_and_not_a_wait() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    run(async {
        let options = Options {
            time_limit: Duration::from_millis(200),
            ..Options::default()
        };
        let (url, between) = start_fault_proxy(&database);
        let store = PostgresStore::open(&url, options).await.unwrap();
        store.create(&owner(), header("s")).await.unwrap();
        between.refuse_connections(true);

        let new = Append::unconditional(vec![named_entry("one", "hello")]);
        let refused = store.append(&session("s"), new.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        let read = store.record(&session("s")).await.unwrap_err();
        assert_eq!(read.kind(), ErrorKind::Unavailable);

        between.refuse_connections(false);
        let appended = store.append(&session("s"), new).await.unwrap();
        assert_eq!(appended.entries[0].seq, Seq(1));
    });
}
