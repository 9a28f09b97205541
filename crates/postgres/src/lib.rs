//! The store for more than one machine: a PostgreSQL database, and any number of
//! programs over it.
//!
//! All appends of a process go through one writer, which takes whatever is waiting,
//! applies it in one transaction and answers everybody once it is durable, as the
//! embedded store does. Everything else has transactions of its own on a few pooled
//! connections. Processes meet at the rows of `head`: whoever writes to a session locks
//! its row there first, always in the same order.
//!
//! Owners are kept apart twice: every statement names the owner, and every transaction
//! tells the database on whose behalf it is, which lets no other rows be seen.
//!
//! What is stored, and what of it is derived, is told in the migrations.

/// What a statement is given, whatever the values are.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$(&$value as &(dyn tokio_postgres::types::ToSql + Sync)),*]
    };
}

mod api_tokens;
mod append;
mod batch;
mod blob;
mod change_feed;
mod change_notifier;
mod check;
mod erase;
mod error;
mod fork;
mod import_log;
mod lease;
mod list;
mod log;
mod maintenance;
mod migrate;
mod open;
mod optimistic_append;
mod read;
mod rebuild;
mod retry;
mod rows;
mod search;
mod tls;
mod token_counts;
mod trash;
mod tx;
mod writer;
mod writer_task;

#[cfg(feature = "test-database")]
pub mod test_database;

pub use error::is_unavailable;
pub use open::{Durability, Options, PostgresStore, redact_url};
pub use search::PostgresIndex;
