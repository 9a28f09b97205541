//! The wire protocol between a client and a server, in types that both use.
//!
//! A call is a method of a store trait: `POST /store/v1/NAME` with its JSON, answered with
//! JSON. Attachments are sent as raw bytes. The token determines the owner; a client names in a
//! header the owner it expects, and the data of any other is not found. A failure of the store
//! is a [`StoreFailure`]; a failure before that (no token, too many requests) is the server's
//! `application/problem+json`.
//!
//! Invariant: an answer under a version never changes its meaning. Anything not understood is
//! refused, never ignored.

mod catalog;
mod change_feed;
mod failure;
mod leases;
mod log;
mod token_counts;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use throughline_model::{Owner, TokenRole};

pub use catalog::{
    CountSessions, FindCandidates, ListProjects, ListSessions, ListTrashed, PutProject, Remove,
    Restore, Trash,
};
pub use change_feed::{ChangesPage, LastPosition, ReadChanges, WaitForChange};
pub use failure::{EntryDamage, StoreFailure};
pub use leases::{AcquireLease, PeekLease, ReleaseLease, RenewLease};
pub(crate) use log::verify_chain;
pub use log::{
    Append, AppendReceipt, Create, EntryToAppend, Erase, Fork, GetHeader, GetRecord, ImportLog,
    Locate, LogSlice, ReadForCopy, ReadStored, SessionCopy,
};
pub use token_counts::{GetTokenCounts, PutTokenCounts};

/// The protocol version.
pub const VERSION: u32 = 1;

/// The path at which a server lists the versions it supports, without authentication.
pub const VERSIONS_PATH: &str = "/store";

/// The path attachments are posted to; each is served under its digest below it.
pub const BLOBS_PATH: &str = "/store/v1/blobs";

/// The header with the protocol version, on every answer from a store.
pub const VERSION_HEADER: &str = "throughline-store";

/// The header in which a client names the owner it expects.
pub const OWNER_HEADER: &str = "throughline-owner";

/// The header in which a service's token names the user it calls for.
pub const ON_BEHALF_OF_HEADER: &str = "on-behalf-of";

/// A call to a store and the type of its answer.
pub trait Call: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name of the call, as in its path.
    const NAME: &'static str;
    /// The type of the answer.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// Returns the path of a call.
pub fn call_path<C: Call>() -> String {
    format!("/store/v{VERSION}/{}", C::NAME)
}

/// The versions a server supports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportedVersions {
    /// The version of the server program.
    pub throughline: String,
    /// The protocol versions.
    pub store: Vec<u32>,
}

/// Asks who the caller is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {}

/// The caller's identity and limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerInfo {
    /// The owner whose sessions the caller reaches.
    pub owner: Owner,
    /// What the token permits.
    pub role: TokenRole,
    /// An identifier that distinguishes this store from any other at the same address; `None`
    /// while the store is empty.
    pub identity: Option<String>,
    /// The largest body of a call, in bytes.
    pub largest: u64,
}

impl Call for Hello {
    const NAME: &'static str = "hello";
    type Answer = CallerInfo;
}
