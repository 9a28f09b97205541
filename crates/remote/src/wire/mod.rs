//! What a client and a server say to each other about a store.
//!
//! A call is a method of a store's trait: `POST /store/v1/NAME` with its JSON, answered with
//! JSON. The bytes of attachments travel as they are. Whose store it is follows from the
//! token; a client says in a header whose it believes it to be, and another's is not found.
//! What goes wrong in the store is a [`Failure`]; what goes wrong before (no token, too many
//! requests) is the server's `application/problem+json`.
//!
//! Invariant: what is answered under a version keeps its meaning. What is not understood is
//! refused, never passed over.

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

/// The version of what is said here.
pub const VERSION: u32 = 1;

/// Where a server tells which versions it speaks, to anybody.
pub const VERSIONS_PATH: &str = "/store";

/// Where the bytes of attachments are put; each is had at its digest below.
pub const BLOBS_PATH: &str = "/store/v1/blobs";

/// The header of every answer from a store, with the version.
pub const VERSION_HEADER: &str = "throughline-store";

/// The header in which a client says whose store it believes this to be.
pub const OWNER_HEADER: &str = "throughline-owner";

/// The header by which a service's token says for whom of its users it calls.
pub const ON_BEHALF_OF_HEADER: &str = "on-behalf-of";

/// Something that is asked of a store, and what it is answered with.
pub trait Call: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What it is called.
    const NAME: &'static str;
    /// What it is answered with.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
}

/// Where a call is answered.
pub fn call_path<C: Call>() -> String {
    format!("/store/v{VERSION}/{}", C::NAME)
}

/// Which versions a server speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportedVersions {
    /// The version of the program.
    pub throughline: String,
    /// The versions of what is said here.
    pub store: Vec<u32>,
}

/// Who am I here?
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {}

/// Who the caller is, and what they have come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerInfo {
    /// Whose sessions are reached.
    pub owner: Owner,
    /// What the token may do.
    pub role: TokenRole,
    /// What tells the store from any that was or will be at the same address; none as long
    /// as nothing has happened in it.
    pub identity: Option<String>,
    /// The largest body of a call, in bytes.
    pub largest: u64,
}

impl Call for Hello {
    const NAME: &'static str = "hello";
    type Answer = CallerInfo;
}
