//! The embedded store: one SQLite file, for one machine.
//!
//! All writes of a process go through one thread (`writer`), which runs the queued jobs in
//! one transaction and replies once it is on disk: with more writers the batches grow, and they
//! share the cost of a sync. Reads use separate connections (`reader_pool`) and never wait
//! for writes. Several processes may use one file; they take turns at writing and see each
//! other's commits immediately.
//!
//! The schema, and which of it is derived data, is documented in the migrations.

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
