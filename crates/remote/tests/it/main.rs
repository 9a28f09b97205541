//! Tests of the remote store over real HTTP: the conformance suite, network faults and
//! refusals.

#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod fault_proxy;
mod faults;
mod harness;
mod refusals;
