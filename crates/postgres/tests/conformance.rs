//! The PostgreSQL store passes the conformance suite.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::cell::RefCell;
use std::time::Duration;

use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::conformance::Fixture;
use throughline_store::{clock_conformance, conformance};

thread_local! {
    /// The database of this thread's last case, for reuse: random tests need many, and
    /// emptying one is cheaper than creating one.
    static SPARE: RefCell<Option<TestDatabase>> = const { RefCell::new(None) };
}

/// A database in use, made available for reuse on drop.
struct SpareOnDrop(Option<TestDatabase>);

impl Drop for SpareOnDrop {
    fn drop(&mut self) {
        SPARE.set(self.0.take());
    }
}

async fn fixture() -> Option<Fixture<PostgresStore>> {
    let database = match SPARE.take() {
        Some(spare) => {
            spare.truncate();
            spare
        }
        None => TestDatabase::new()?,
    };
    Some(Fixture {
        store: database.open(Options::default()).await,
        guard: Box::new(SpareOnDrop(Some(database))),
    })
}

conformance!(match fixture().await {
    Some(fixture) => fixture,
    None => return,
});

/// The database's clock cannot be changed, so every lease is moved into the future instead.
async fn set_clock_back(fixture: &Fixture<PostgresStore>, by: Duration) {
    let SpareOnDrop(database) = fixture.guard.downcast_ref().unwrap();
    let by = by.as_micros();
    let sql = format!(
        "UPDATE throughline.lease
         SET granted_at = granted_at + {by}, expires_at = expires_at + {by}"
    );
    let client = database.as_ref().unwrap().connect().await;
    client.batch_execute(&sql).await.unwrap();
}

clock_conformance!(
    match fixture().await {
        Some(fixture) => fixture,
        None => return,
    },
    set_clock_back
);
