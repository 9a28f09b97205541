//! Tests every reader with files as its system writes them, including damaged ones; the
//! results are compared with snapshots.

#![allow(clippy::unwrap_used, reason = "tests")]

mod damage;
mod databases;
mod discovery;
mod files;
mod incremental;
mod rendered_records;
