//! Browser tests of the web page: a real server, store and browser.
//!
//! Chromium is driven by `chromedriver`. If it is not installed, these tests print a warning and
//! pass, unless `CI` is set; `cargo xtask test` installs it.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests may panic, and read the environment to decide whether to skip"
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
