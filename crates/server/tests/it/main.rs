//! The server as its callers see it: a real one on a port of this machine, on a real
//! store, spoken to over HTTP.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

mod access;
mod actions;
mod clients;
mod document;
mod events;
mod harness;
mod hostile;
mod installed;
mod mcp;
mod openai;
mod sessions;
mod stand_in;
mod tls;
mod turns;
