//! Integration tests of the server over HTTP, with a real listener and store.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

mod access;
mod actions;
mod client_packages;
mod clients;
mod events;
mod harness;
mod hostile;
mod mcp;
mod mock_provider;
mod openai;
mod openapi_document;
mod sessions;
mod tls;
mod turns;
