//! What a store of sessions is: small traits, and the suite that holds every
//! implementation to them.
//!
//! [`LogStore`] keeps logs, [`Catalog`] finds sessions, [`BlobStore`] keeps
//! attachments, [`TokenStore`] keeps token counts, [`Feed`] tells what happened in order,
//! [`Access`] knows who may call, [`Leases`] gives work to one at a time, and [`Upkeep`]
//! proves that all of it is sound. A type that is all eight is a [`Store`]. Every call says on whose behalf it is made, but for those of
//! [`Upkeep`] and [`Access`], which never return what was said, and of [`Feed`], which
//! serves indexes and events.
//!
//! [`MemoryStore`] is the simplest thing that is right. It serves tests, and the
//! random tests of every other store are run against it.

mod access;
mod append;
mod blob;
mod catalog;
mod check;
mod error;
mod feed;
mod lease;
mod log;
mod memory;
mod prepared;
mod retry;
mod tokens;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use access::Access;
pub use append::{
    Append, Appended, Encoded, EntryIds, Expect, How, MAX_ENTRY_BYTES, OnConflict, Settled,
    refuse_large_entry, repeat_of, settle,
};
pub use blob::{BlobStore, MAX_BLOB_BYTES, admit_blob};
pub use catalog::{Candidate, Catalog, Cursor, CursorError, Filter, Page, Scope, Trashed};
pub use check::{Finding, LogCheck, Progress, Report, Upkeep};
pub use error::{BoxError, ErrorKind, StoreError};
pub use feed::{Change, Event, Feed, Position, What};
pub use lease::{Fence, Lease, LeaseHolder, Leases, MAX_CLOCK_CORRECTION, is_in_effect};
pub use log::{Created, LogStore, Read, refuse_unknown_entries};
pub use memory::MemoryStore;
pub use prepared::{Prepared, decode, encode, encode_beforehand, verify};
pub use retry::{
    BatchAction, BatchFault, BatchRun, BatchStep, QueuedWrite, RetryPolicy, is_expired,
    take_expired,
};
pub use tokens::TokenStore;

/// Every migration there has been, oldest first, with its name. The names are the same for
/// all stores, and the files are each store's own, in its folder `migrations`.
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

/// A whole store.
pub trait Store:
    LogStore + Catalog + BlobStore + TokenStore + Feed + Access + Leases + Upkeep
{
}

impl<T: LogStore + Catalog + BlobStore + TokenStore + Feed + Access + Leases + Upkeep> Store for T {}
