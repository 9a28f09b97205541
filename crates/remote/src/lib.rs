//! A store that a server keeps: `https://…`.
//!
//! [`RemoteStore`] is a [`Store`](throughline_store::Store) whose every call is a request to
//! a server (`tl serve`), made with a token. It reaches what the token's owner has, and
//! nothing else: tokens and upkeep are the business of whoever runs the server.
//!
//! [`wire`] is what both sides say, in types: a call is a method of a store's trait, and
//! what goes wrong there comes out here as the same [`StoreError`](throughline_store::StoreError).
//!
//! A call that got no answer is made again. That is safe because no call does anything twice:
//! appends carry entry ids, births their session's id, and the rest says how things are to be.

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
