//! Helpers shared by the tests.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

use throughline_cluster::{FaultProxy, Upstream};
use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
pub(crate) use throughline_store::conformance::processes::{
    append, child_process, named_entry, parse_acknowledgements, print_acknowledgement, read_log,
    role, session,
};
pub(crate) use throughline_store::conformance::{at, header, owner, run};
use tokio_postgres::config::Host;

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Options::default())
        .await
        .expect("the store opens")
}

/// Starts a proxy that can cut connections; returns the store's URL through it.
pub(crate) fn start_fault_proxy(database: &TestDatabase) -> (String, FaultProxy) {
    let config: tokio_postgres::Config = database.url().parse().expect("a valid database URL");
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let upstream = match &config.get_hosts()[0] {
        Host::Tcp(name) => Upstream::Host(name.clone(), port),
        Host::Unix(folder) => Upstream::Socket(folder.join(format!(".s.PGSQL.{port}"))),
    };
    let proxy = FaultProxy::start(upstream).expect("a valid database URL");
    let (user, name) = (
        config.get_user().expect("a valid database URL"),
        config.get_dbname().expect("a valid database URL"),
    );
    let here = proxy.port();
    let url = format!("postgres://{user}@127.0.0.1:{here}/{name}?sslmode=disable");
    (url, proxy)
}
