//! The storage interface: traits for session stores, and a conformance suite for their
//! implementations.
//!
//! [`LogStore`] stores logs, [`Catalog`] finds sessions, [`BlobStore`] stores
//! attachments, [`TokenCounts`] stores token counts, [`ChangeFeed`] returns all changes
//! in order, [`ApiTokens`] stores API tokens, [`LeaseStore`] grants leases, and
//! [`Maintenance`] checks and repairs. A [`Store`] implements all eight. Every call is
//! scoped to an owner, except for those of [`Maintenance`] and [`ApiTokens`], which
//! never return message content, and of [`ChangeFeed`], which serves indexes and
//! events.
//!
//! [`MemoryStore`] is the reference implementation. Tests use it, and the random tests
//! of every other store compare against it.

mod api_tokens;
mod append;
mod blob;
mod catalog;
mod change_feed;
mod error;
mod lease;
mod log;
mod maintenance;
mod memory;
mod prepared_append;
mod retry;
mod token_counts;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use api_tokens::ApiTokens;
pub use append::{
    Append, AppendDecision, AppendKind, AppendOutcome, EncodedPayload, EntryIds, Expect,
    MAX_ENTRY_BYTES, OnConflict, decide_append, find_repeat, refuse_large_entry,
};
pub use blob::{BlobStore, MAX_BLOB_BYTES, validate_blob};
pub use catalog::{
    Candidate, Catalog, Cursor, CursorError, Page, SessionFilter, SessionScope, TrashedSession,
};
pub use change_feed::{Change, ChangeFeed, ChangeKind, Position, SessionEvent};
pub use error::{BoxError, ErrorKind, StoreError};
pub use lease::{Fence, Lease, LeaseHolder, LeaseStore, MAX_CLOCK_CORRECTION, is_lease_in_effect};
pub use log::{CreateOutcome, LogStore, ReadRange, refuse_unknown_entries};
pub use maintenance::{CheckReport, Finding, LogChecker, Maintenance, ProgressCallback};
pub use memory::MemoryStore;
pub use prepared_append::{PreparedAppend, decode_entry, encode_body, encode_entry, verify_entry};
pub use retry::{
    BatchAction, BatchFault, BatchRecovery, BatchRun, QueuedWrite, RetryPolicy, is_expired,
    take_expired,
};
pub use token_counts::TokenCounts;

/// All migrations, oldest first, by name. The names are the same for all SQL stores;
/// the files are in each store's own `migrations` folder.
#[macro_export]
macro_rules! migrations {
    () => {
        $crate::migrations![
            "20261115090000_sessions",
            "20261115100000_token_counts",
            "20261115110000_changes",
            "20261116090000_tokens",
            "20261116100000_leases",
            "20261116150000_passages",
            "20261116170000_append",
            "20261116180000_estimates",
            "20261118090000_append_one",
            "20261118100000_index_anchors",
            "20261118110000_lease_granted_at",
            "20261118113000_lock_timeout",
        ]
    };
    ($($name:literal),+ $(,)?) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/", $name, ".sql")),
        )),+]
    };
}

/// A complete store.
pub trait Store:
    LogStore + Catalog + BlobStore + TokenCounts + ChangeFeed + ApiTokens + LeaseStore + Maintenance
{
}

impl<
    T: LogStore
        + Catalog
        + BlobStore
        + TokenCounts
        + ChangeFeed
        + ApiTokens
        + LeaseStore
        + Maintenance,
> Store for T
{
}
