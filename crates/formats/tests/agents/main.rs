//! Every reader against files written as its system writes them, damage included: what is
//! told of each is compared with a golden text.

#![allow(clippy::unwrap_used, reason = "tests")]

mod damage;
mod databases;
mod files;
mod finding;
mod growing;
mod told;
