//! Fuzz targets: the readers of other systems' sessions and of our own formats.
//!
//! The inputs are the fixtures of `tests/agents` and the files in `corpus/`. `cargo xtask fuzz`
//! runs the same targets for longer.

#![allow(clippy::unwrap_used, reason = "a test")]

mod agents;
mod databases;
mod own_formats;
mod properties;

use std::path::{Path, PathBuf};

/// The folder of inputs that failed once, and of others that are not fixtures.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/fixtures")
}
