//! The PostgreSQL store: durable sessions shared by any number of processes and machines.
//!
//! All appends of a process go through one writer, which commits everything queued in one
//! transaction and replies once it is durable, as the embedded store does. All other
//! operations run in their own transactions on a small connection pool. Processes
//! coordinate through the rows of `head`: a transaction that writes to a session first
//! locks its row there, always in the same order.
//!
//! Owners are isolated twice: every statement names the owner, and every transaction sets
//! the owner for row-level security, which hides all other rows.
//!
//! The migrations document what is stored and which parts of it are derived.

/// The parameters of a statement, of any types.
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
