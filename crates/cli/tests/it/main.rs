//! Integration tests of the `tl` program: exact output, exit codes, hostile input.

#![allow(clippy::unwrap_used, reason = "tests")]

mod agents;
mod append;
mod compatibility;
mod context;
mod contract;
mod doctor;
mod errors;
mod export_import;
mod faults;
mod fleet;
mod forks;
mod generated_files;
mod harness;
mod input;
mod lease_wait;
mod listing;
mod maintenance;
mod memory;
mod migrate_store;
mod models;
#[cfg(unix)]
mod permissions;
mod postgres;
mod projects;
mod remote;
mod search;
mod security;
mod serve_and_token;
mod server_process;
mod session_lifecycle;
mod settings;
