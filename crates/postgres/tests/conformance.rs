//! The store for more than one machine passes the suite.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::cell::RefCell;
use std::time::Duration;

use throughline_postgres::test_database::TestDatabase;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::conformance::Fixture;
use throughline_store::{clock_conformance, conformance};

thread_local! {
    /// The database that this thread's last case was done with: random tests need many, and
    /// to empty one is cheaper than to make one.
    static SPARE: RefCell<Option<TestDatabase>> = const { RefCell::new(None) };
}

/// A database in use, which is spare afterwards.
struct SpareOnDrop(Option<TestDatabase>);

impl Drop for SpareOnDrop {
    fn drop(&mut self) {
        SPARE.set(self.0.take());
    }
}

async fn fixture() -> Option<Fixture<PostgresStore>> {
    let trial = match SPARE.take() {
        Some(spare) => {
            spare.truncate();
            spare
        }
        None => TestDatabase::new()?,
    };
    Some(Fixture {
        store: trial.open(Options::default()).await,
        guard: Box::new(SpareOnDrop(Some(trial))),
    })
}

conformance!(match fixture().await {
    Some(fixture) => fixture,
    None => return,
});

/// The database's clock stays as it is: every lease is moved into the future instead.
async fn set_clock_back(fixture: &Fixture<PostgresStore>, by: Duration) {
    let SpareOnDrop(trial) = fixture.guard.downcast_ref().unwrap();
    let by = by.as_micros();
    let sql = format!(
        "UPDATE throughline.lease
         SET granted_at = granted_at + {by}, expires_at = expires_at + {by}"
    );
    let database = trial.as_ref().unwrap().connect().await;
    database.batch_execute(&sql).await.unwrap();
}

clock_conformance!(
    match fixture().await {
        Some(fixture) => fixture,
        None => return,
    },
    set_clock_back
);
