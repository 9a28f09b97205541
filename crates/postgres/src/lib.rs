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

mod access;
mod adopt;
mod append;
mod batch;
mod blob;
mod check;
mod erase;
mod error;
mod feed;
mod foreseen;
mod fork;
mod lease;
mod list;
mod log;
mod migrate;
mod open;
mod patience;
mod read;
mod rebuild;
mod rows;
mod search;
mod tls;
mod tokens;
mod trash;
mod tx;
mod upkeep;
mod wake;
mod writer;
mod writer_task;

#[cfg(feature = "trial")]
pub mod trial;

pub use error::is_away;
pub use open::{Durability, Options, PostgresStore, redacted};
pub use search::PostgresIndex;
