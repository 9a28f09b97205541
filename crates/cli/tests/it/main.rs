//! `tl` as a person or a script meets it: exact output, exit codes, hostile input.

#![allow(clippy::unwrap_used, reason = "tests")]

mod agents;
mod appending;
mod compatibility;
mod context;
mod contract;
mod doctor;
mod errors;
mod exchange;
mod faults;
mod fleet;
mod forks;
mod generated;
mod harness;
mod input;
mod life;
mod listing;
mod memory;
mod migrating;
mod models;
#[cfg(unix)]
mod permissions;
mod postgres;
mod projects;
mod remote;
mod search;
mod security;
mod served;
mod serving;
mod settings;
mod upkeep;
mod waiting;
