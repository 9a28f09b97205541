//! Acknowledged writes survive a crash of the database server, including writes by others
//! that an answer depends on.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{append, header, named_entry, owner, run, session};
use throughline_cluster::{Cluster, PostgresBinaries};
use throughline_model::Seq;
use throughline_postgres::{Durability, Options, PostgresStore};
use throughline_store::{Append, AppendKind, BlobStore, LogStore};

async fn open(cluster: &Cluster, durability: Durability) -> PostgresStore {
    let options = Options {
        durability,
        ..Options::default()
    };
    PostgresStore::open(&cluster.url(), options).await.unwrap()
}

fn crash(cluster: &mut Cluster) {
    cluster.stop_immediately().unwrap();
    cluster.ensure_running().unwrap();
}

/// A server that flushes its log only when a commit waits for it, or every ten seconds.
fn lazy_cluster() -> Option<Cluster> {
    let programs = PostgresBinaries::for_tests()?;
    let settings = ["fsync=off", "wal_writer_delay=10s", "autovacuum=off"];
    Some(Cluster::start(&programs, &settings).unwrap())
}

#[test]
fn an_answer_that_rests_on_what_another_server_has_not_synced_is_synced() {
    let Some(mut cluster) = lazy_cluster() else {
        return;
    };
    run(async {
        drop(open(&cluster, Durability::Full).await);
        // A session that already exists.
        let (lazy, sure) = (
            open(&cluster, Durability::Normal).await,
            open(&cluster, Durability::Full).await,
        );
        lazy.create(&owner(), header("s")).await.unwrap();
        assert!(sure.create(&owner(), header("s")).await.unwrap().existed);
        crash(&mut cluster);
        sure.record(&session("s")).await.unwrap();

        // A repeated append.
        append(&lazy, &session("s"), named_entry("one", "one")).await;
        let repeat = Append::unconditional(vec![named_entry("one", "one")]);
        let repeated = sure.append(&session("s"), repeat).await.unwrap();
        assert_eq!(repeated.kind, AppendKind::Repeated);
        crash(&mut cluster);
        assert_eq!(sure.record(&session("s")).await.unwrap().info.head, Seq(1));

        // An attachment that already exists.
        let lazily = lazy.put_blob(&owner(), b"bytes".to_vec()).await.unwrap();
        let digest = sure.put_blob(&owner(), b"bytes".to_vec()).await.unwrap();
        assert_eq!(digest, lazily);
        crash(&mut cluster);
        assert_eq!(sure.blob(&owner(), &digest).await.unwrap(), b"bytes");

        // A fork that already exists.
        lazy.fork(&session("s"), Seq(1), header("f")).await.unwrap();
        sure.fork(&session("s"), Seq(1), header("f")).await.unwrap();
        crash(&mut cluster);
        assert_eq!(sure.record(&session("f")).await.unwrap().info.head, Seq(1));
    });
}

#[test]
fn a_database_that_is_set_not_to_sync_syncs_for_a_store_that_promises_it() {
    let Some(mut cluster) = lazy_cluster() else {
        return;
    };
    run(async {
        let lazy = "ALTER DATABASE postgres SET synchronous_commit = off";
        cluster.run_sql(lazy).unwrap();
        let store = open(&cluster, Durability::Full).await;
        store.create(&owner(), header("s")).await.unwrap();
        crash(&mut cluster);
        for count in 1..=3 {
            let name = format!("entry {count}");
            append(&store, &session("s"), named_entry(&name, &name)).await;
            crash(&mut cluster);
            let record = store.record(&session("s")).await.unwrap();
            assert_eq!(record.info.head, Seq(count));
        }
    });
}
