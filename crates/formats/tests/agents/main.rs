//! Every reader against files written as its system writes them, damage included: what is
//! told of each is compared with a golden text.

#![allow(clippy::unwrap_used, reason = "tests")]

mod damage;
mod databases;
mod discovery;
mod files;
mod incremental;
mod rendered_records;
