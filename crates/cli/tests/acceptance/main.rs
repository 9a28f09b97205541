//! The systems `tl` takes after, by their own lists: a module a system, a test a line.
//!
//! What those documents promise is tried here through `tl`, and through the library where
//! it is a library's promise.

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
