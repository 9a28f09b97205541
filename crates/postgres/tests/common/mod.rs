//! What the tests share.

#![allow(dead_code, reason = "each test uses some of it")]

use throughline_model::{
    Birth, EntryId, NewEntry, Owner, Role, Seq, SessionRef, StoredEntry, Timestamp,
};
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{Append, LogStore, Read};

/// Runs a test to its end.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(test)
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Options::default())
        .await
        .expect("the store opens")
}

pub(crate) fn owner() -> Owner {
    Owner::local()
}

pub(crate) fn session(id: &str) -> SessionRef {
    owner().session(&id.parse().expect("a session id"))
}

pub(crate) fn birth(id: &str) -> Birth {
    Birth::new(id.parse().expect("a session id"), at(0))
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

/// An entry whose id follows from its name.
pub(crate) fn entry(name: &str, text: &str) -> NewEntry {
    NewEntry::text(
        EntryId::derived(&[name.as_bytes()]),
        at(1),
        Role::User,
        text,
    )
}

pub(crate) async fn append(store: &PostgresStore, to: &SessionRef, new: NewEntry) -> Seq {
    let appended = store.append(to, Append::any(vec![new])).await;
    appended.expect("appended").entries[0].seq
}

/// The whole log of a session, page by page.
pub(crate) async fn log(store: &PostgresStore, of: &SessionRef) -> Vec<StoredEntry> {
    let mut log: Vec<StoredEntry> = Vec::new();
    loop {
        let from = log.last().map_or(Seq(1), |last| last.seq.next());
        let page = store.read_stored(of, Read::from(from, 500)).await;
        let page = page.expect("read");
        if page.is_empty() {
            return log;
        }
        log.extend(page);
    }
}
