//! The remote store: a client for the store behind a server (`https://…`).
//!
//! [`RemoteStore`] is a [`Store`](throughline_store::Store) whose every call is a request to a
//! server (`tl serve`), authenticated by a token. It reaches the data of the token's owner and
//! nothing else: token management and maintenance are done on the server.
//!
//! [`wire`] defines the protocol of both sides: a call is a method of a store trait, and a
//! failure on the server is returned here as the same
//! [`StoreError`](throughline_store::StoreError).
//!
//! A call that got no answer is retried. That is safe because every call is idempotent: appends
//! carry entry ids, session headers carry the session's id, and the other calls describe a
//! target state.

mod api_tokens;
mod bearer_token;
mod blobs;
mod catalog;
mod change_feed;
mod client;
mod error;
mod leases;
mod log;
mod maintenance;
mod retry;
mod server_url;
mod store;
mod token_counts;
pub mod wire;

pub use bearer_token::BearerToken;
pub use client::Timeouts;
pub use error::RemoteError;
pub use server_url::ServerUrl;
pub use store::RemoteStore;
