//! The page as people use it: a real server, a real store, a real browser.
//!
//! Chromium is driven by `chromedriver`. Where that is not installed, these tests say so
//! loudly and pass, unless `CI` is set; `cargo xtask test` installs it.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may panic, and is told by its environment whether it may be skipped"
)]

mod browser;
#[path = "../demo/mod.rs"]
mod demo;
#[allow(
    dead_code,
    reason = "shared with the other tests, which need more of it"
)]
#[path = "../it/harness.rs"]
mod harness;
mod hostile;
mod keyboard;
mod large;
mod live_updates;
mod login;
mod sessions;
mod views;
