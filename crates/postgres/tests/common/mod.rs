//! What the tests share.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

use throughline_postgres::{Options, PostgresStore};
pub(crate) use throughline_store::conformance::processes::{
    acknowledge, acknowledged, append, entry, log, process, role, session,
};
pub(crate) use throughline_store::conformance::{at, birth, owner, run};

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Options::default())
        .await
        .expect("the store opens")
}
