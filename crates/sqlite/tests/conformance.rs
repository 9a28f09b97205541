//! Runs the store conformance suite against the SQLite store.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use throughline_sqlite::{Options, SqliteStore};
use throughline_store::conformance::Fixture;
use throughline_store::{clock_conformance, conformance};

fn fixture() -> Fixture<SqliteStore> {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db"), Options::default()).unwrap();
    Fixture {
        store,
        guard: Box::new(folder),
    }
}

conformance!(fixture());

/// The machine's clock cannot be changed: every lease is moved into the future instead.
#[allow(clippy::unused_async, reason = "other stores need it to be")]
async fn set_clock_back(fixture: &Fixture<SqliteStore>, by: Duration) {
    let folder: &tempfile::TempDir = fixture.guard.downcast_ref().unwrap();
    let file = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let by = i64::try_from(by.as_micros()).unwrap();
    let moved = "UPDATE lease SET granted_at = granted_at + ?1, expires_at = expires_at + ?1";
    file.execute(moved, [by]).unwrap();
}

clock_conformance!(fixture(), set_clock_back);
