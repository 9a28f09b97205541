//! The store for more than one machine passes the suite.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::cell::RefCell;
use std::time::Duration;

use throughline_postgres::trial::Trial;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::conformance::Fixture;
use throughline_store::{clock_conformance, conformance};

thread_local! {
    /// The database that this thread's last case was done with: random tests need many, and
    /// to empty one is cheaper than to make one.
    static SPARE: RefCell<Option<Trial>> = const { RefCell::new(None) };
}

/// A database in use, which is spare afterwards.
struct Kept(Option<Trial>);

impl Drop for Kept {
    fn drop(&mut self) {
        SPARE.set(self.0.take());
    }
}

async fn fixture() -> Option<Fixture<PostgresStore>> {
    let trial = match SPARE.take() {
        Some(spare) => {
            spare.empty();
            spare
        }
        None => Trial::new()?,
    };
    Some(Fixture {
        store: trial.open(Options::default()).await,
        keep: Box::new(Kept(Some(trial))),
    })
}

conformance!(match fixture().await {
    Some(fixture) => fixture,
    None => return,
});

/// The database's clock stays as it is: every lease is moved into the future instead.
async fn set_back(fixture: &Fixture<PostgresStore>, by: Duration) {
    let Kept(trial) = fixture.keep.downcast_ref().unwrap();
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
    set_back
);
