//! The embedded store: one SQLite file, for one machine.
//!
//! All writes of a process go through one thread, which takes whatever
//! is waiting, applies it in one transaction and answers everybody once it is on the
//! disk: the more writers, the larger the batch, and a sync costs all of them once.
//! Reads have connections of their own and wait for nobody. Several processes may use
//! one file; they take turns at writing and see each other's turns at once.
//!
//! What is stored, and what of it is derived, is told in the migrations.

mod api_tokens;
mod append;
mod backup;
mod blob;
mod busy_handler;
mod change_feed;
mod check;
mod erase;
mod error;
mod file_holders;
mod file_identity;
mod fork;
mod fsync;
mod lease;
mod list;
mod log;
mod maintenance;
mod migrate;
mod open;
mod permissions;
mod read;
mod reader_pool;
mod rebuild;
mod restore;
mod rows;
mod salvage;
mod skip_list;
mod token_counts;
mod trash;
mod tx;
mod wal_checkpoint;
mod writer;

pub use open::{Durability, Options, SqliteStore};
pub use restore::{RestoreError, RestoreOptions, RestoreReport, restore_backup};
pub use salvage::{Loss, SalvageReport, salvage};
