//! The store for more than one machine passes the suite.

#![allow(clippy::unwrap_used, reason = "a test")]

use throughline_postgres::trial::Trial;
use throughline_postgres::{Options, PostgresStore};
use throughline_store::conformance;
use throughline_store::conformance::Fixture;

async fn fixture() -> Option<Fixture<PostgresStore>> {
    let trial = Trial::new()?;
    Some(Fixture {
        store: trial.open(Options::default()).await,
        keep: Box::new(trial),
    })
}

conformance!(match fixture().await {
    Some(fixture) => fixture,
    None => return,
});
