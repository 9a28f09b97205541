//! Finding anything ever said.
//!
//! An [`Index`] is derived from a store: deleting it loses nothing. One process feeds it
//! what was appended, in batches, through the [`Feeder`]; any number search it. A
//! [`FolderIndex`] is a folder beside the store. Whoever keeps passages elsewhere implements
//! [`Stock`], which a feeder writes to, and [`Sight`], which a search looks at; what is
//! indexed and how it is ranked is the same. A [`Query`] is answered within a [`Scope`], by words, by meaning, or by
//! both fused, with a score that says what it is made of.
//!
//! Everything works offline: the semantic model is in the binary. Whatever implements
//! [`Compare`] can be added, and then compares the first hits again: a [`Contextual`] model
//! from a folder, or one that is reached otherwise.
//!
//! This crate reads neither clock nor environment.

mod best;
mod compare;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "contextual")]
mod contextual;
mod date;
mod document;
mod encoded;
mod error;
mod feeder;
mod fold;
mod folder;
mod fusion;
mod hit;
mod index;
mod language;
mod late;
mod model;
mod passage;
mod prepared;
pub mod private;
mod query;
mod rank;
mod scope;
mod search;
mod shelf;
mod sight;
mod snippet;
mod spelling;
mod state;
mod stock;
mod stop;
mod terms;
mod vector;
mod window;
mod words;

pub use best::Best;
pub use compare::{Compare, CompareError, Compared, Question, Reading};
#[cfg(feature = "contextual")]
pub use contextual::{Contextual, ContextualError};
pub use date::DateError;
pub use document::{Document, Tally};
pub use encoded::{Encoded, Encodings, Keeping, Rows};
pub use error::{ErrorKind, RecallError};
pub use feeder::Feeder;
pub use folder::FolderIndex;
pub use hit::{Found, Hit, Why};
pub use index::Index;
pub use language::{Filter, ParseError, Parsed, parse};
pub use model::{BYTES as STATIC_BYTES, DIGEST as STATIC_DIGEST, likeness};
pub use passage::{Batch, Passage, Removal};
pub use query::{Mode, Query};
pub use scope::{Scope, Stretch};
pub use sight::{At, Kept, Sight, Spread};
pub use snippet::Snippet;
pub use spelling::Spelling;
pub use state::{Anchor, IndexState};
pub use stock::{Place, Stock};
pub use terms::says_something;
pub use vector::Vector;
pub use words::{in_order, terms};
