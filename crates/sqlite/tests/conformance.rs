//! The embedded store passes the suite.

#![allow(clippy::unwrap_used, reason = "a test")]

use throughline_sqlite::{Options, SqliteStore};
use throughline_store::conformance;
use throughline_store::conformance::Fixture;

fn fixture() -> Fixture<SqliteStore> {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db"), Options::default()).unwrap();
    Fixture {
        store,
        keep: Box::new(folder),
    }
}

conformance!(fixture());
