//! End-to-end tests of the chat in a terminal, with snapshots of the screen.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod agents;
mod commands;
mod exit;
mod faults;
#[path = "../it/harness.rs"]
#[allow(
    dead_code,
    unused_macros,
    reason = "shared with the tests of the commands"
)]
mod harness;
mod key_input;
mod keys;
mod models;
mod picker;
mod print_mode;
mod provider;
mod pty;
mod resume;
mod screen;
mod session_lifecycle;
mod two_windows;

/// Compares a screen with the snapshot of that name.
#[macro_export]
macro_rules! assert_screen {
    ($name:expr, $screen:expr $(,)?) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let screen = $screen;
        settings.bind(|| insta::assert_snapshot!($name.to_string(), screen));
    }};
}
