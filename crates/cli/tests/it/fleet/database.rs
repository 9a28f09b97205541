//! A database that becomes unavailable, is full, or fails over.

use std::time::Duration;

use throughline_cluster::{Cluster, FaultProxy, PostgresBinaries, Upstream};
use throughline_postgres::test_database::TestDatabase;

use super::{Fleet, append_while};
use crate::server_process::HttpRequest;

#[test]
fn a_database_restarted_under_load_loses_nothing() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    // With default durability: what it has acknowledged is on disk.
    let mut cluster = Cluster::start(&programs, &[]).unwrap();
    let url = cluster.url();
    let fleet = Fleet::start([&url; 3], &[]);
    let work = append_while(&fleet, 6, 20, 40, || {
        for _ in 0..2 {
            cluster.stop_immediately().unwrap();
            std::thread::sleep(Duration::from_millis(300));
            cluster.ensure_running().unwrap();
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    fleet.verify(&work.acknowledged);
}

#[test]
fn a_connection_cut_in_the_middle_of_a_commit_doubles_nothing() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let cluster = Cluster::start(&programs, &["fsync=off"]).unwrap();
    let cutter = FaultProxy::start(Upstream::Socket(cluster.socket())).unwrap();
    cutter.cut_commits(false);
    let cut = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
        cutter.port()
    );
    let fleet = Fleet::start([&cluster.url(), &cut, &cut], &[]);
    let work = append_while(&fleet, 6, 12, 10, || cutter.cut_commits(true));
    cutter.cut_commits(false);
    assert!(cutter.cuts() >= 5, "{} commits were cut", cutter.cuts());
    // The servers retried by themselves: no client received an error.
    assert_eq!(work.refused, Vec::<String>::new());
    fleet.verify(&work.acknowledged);
}

#[test]
fn a_server_whose_connections_are_all_in_use_has_others_wait() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let url = trial.url();
    let fleet = Fleet::start([&url; 3], &[]);
    let session = fleet.session("busy");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // Nobody can read a session: there are more requests than connections.
    let blocking = runtime.block_on(async {
        let client = trial.connect().await;
        let block = "BEGIN; LOCK TABLE throughline.session IN ACCESS EXCLUSIVE MODE";
        client.batch_execute(block).await.unwrap();
        client
    });
    let asking: Vec<_> = (0..24)
        .map(|_| {
            let address = fleet.servers[0].address.clone();
            let path = format!("/api/sessions/{session}");
            std::thread::spawn(move || {
                let ask = HttpRequest {
                    method: "GET",
                    path: &path,
                    headers: "",
                    body: "",
                };
                ask.fetch(&address).unwrap()
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    assert!(!asking.iter().any(std::thread::JoinHandle::is_finished));
    runtime.block_on(async { blocking.batch_execute("COMMIT").await.unwrap() });
    for one in asking {
        let (status, found) = one.join().unwrap();
        assert_eq!(status, 200, "{found}");
    }
}

/// The URL of whichever of two servers accepts writes.
fn read_write_url(one: &Cluster, other: &Cluster) -> String {
    let hosts = [one.host(), other.host()].join(",");
    format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write")
}

#[test]
fn a_replica_that_takes_over_has_everything_that_was_acknowledged() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let mut primary = Cluster::start(&programs, &[]).unwrap();
    let replica = primary.start_replica().unwrap();
    // From now on a commit waits for the replica.
    primary
        .run_sql("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        .unwrap();
    primary.run_sql("SELECT pg_reload_conf()").unwrap();
    let following = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    while primary.run_sql(following).unwrap() != "1" {
        std::thread::sleep(Duration::from_millis(20));
    }
    let url = read_write_url(&primary, &replica);
    let fleet = Fleet::start([&url; 3], &[]);
    let work = append_while(&fleet, 6, 20, 60, || {
        primary.stop_immediately().unwrap();
        replica.promote().unwrap();
    });
    fleet.verify(&work.acknowledged);
    assert_eq!(replica.run_sql("SELECT pg_is_in_recovery()").unwrap(), "f");
}
