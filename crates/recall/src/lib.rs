//! Finding anything ever said.
//!
//! An [`Index`] is a folder beside a store, derived from it: deleting it loses nothing.
//! One process feeds it what was appended, in batches, through the [`Feeder`]; any number
//! search it. A [`Query`] is answered within a [`Scope`], by words, by meaning, or by
//! both fused, with a score that says what it is made of.
//!
//! Everything works offline: the semantic model is in the binary. Whatever implements
//! [`Compare`] can be added, and then compares the first hits again: a [`Contextual`] model
//! from a folder, or one that is reached otherwise.
//!
//! This crate reads neither clock nor environment.

mod best;
mod compare;
#[cfg(feature = "contextual")]
mod contextual;
mod date;
mod encoded;
mod error;
mod feeder;
mod filter;
mod fold;
mod fusion;
mod hit;
mod index;
mod language;
mod late;
mod model;
mod passage;
mod prepared;
mod query;
mod rank;
mod scan;
mod schema;
mod scope;
mod search;
mod shelf;
mod snippet;
mod stop;
mod terms;
mod text;
mod typing;
mod vectors;
mod window;
mod words;

pub use compare::{Compare, CompareError, Compared, Question, Reading};
#[cfg(feature = "contextual")]
pub use contextual::{Contextual, ContextualError};
pub use date::DateError;
pub use encoded::{Keeping, Rows};
pub use error::{ErrorKind, RecallError};
pub use feeder::Feeder;
pub use hit::{Found, Hit, Why};
pub use index::Index;
pub use language::{Filter, ParseError, Parsed, parse};
pub use model::{BYTES as STATIC_BYTES, DIGEST as STATIC_DIGEST, likeness};
pub use passage::{Batch, Passage, Removal};
pub use query::{Mode, Query};
pub use scope::{Scope, Stretch};
pub use snippet::Snippet;
pub use terms::says_something;
