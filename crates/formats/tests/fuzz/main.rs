//! Fuzz targets: the readers of every agent's sessions, and of our own formats.
//!
//! The documents are the fixtures of `tests/agents` and what is kept in `corpus/`. `cargo xtask fuzz`
//! runs the same targets for longer.

#![allow(clippy::unwrap_used, reason = "a test")]

mod agents;
mod databases;
mod own_formats;
mod properties;

use std::path::{Path, PathBuf};

/// Inputs that failed once, and others that are not fixtures.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/fixtures")
}
