//! Acceptance tests against the reference systems: one module per system, one test per line
//! of its specification.
//!
//! What those documents promise is tested through `tl`, or through the library where it is
//! a promise of a library.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod agent_cli;
mod aiarmy;
mod bot;
mod chat_loop;
mod dagent;
mod steps;

#[path = "../it/harness.rs"]
#[allow(dead_code, unused_macros, reason = "shared with other tests")]
mod harness;
#[path = "../chat/provider.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod provider;
#[path = "../chat/pty.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod pty;
#[path = "../chat/screen.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod screen;
