//! A store that a server keeps, over real HTTP: the whole suite about sessions, and what the
//! way to a server adds to it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod fault_proxy;
mod faults;
mod harness;
mod refusals;
