//! The chat as a person meets it: through a terminal, with the screens they see.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod agents;
mod commands;
mod faults;
#[path = "../it/harness.rs"]
#[allow(
    dead_code,
    unused_macros,
    reason = "shared with the tests of the commands"
)]
mod harness;
mod keys;
mod leaving;
mod life;
mod models;
mod once;
mod picker;
mod provider;
mod pty;
mod resuming;
mod screen;
mod typing;
mod windows;

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
