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

mod access;
mod address;
mod blobs;
mod catalog;
mod client;
mod error;
mod feed;
mod leases;
mod log;
mod patience;
mod store;
mod token;
mod tokens;
mod upkeep;
pub mod wire;

pub use address::ServerUrl;
pub use client::Timing;
pub use error::TalkError;
pub use store::RemoteStore;
pub use token::TokenText;
