//! Full-text and semantic search over stored sessions.
//!
//! An [`Index`] is derived from a store: deleting it loses nothing. One process writes the
//! appended entries to it in batches, through an [`Indexer`]; any number of processes search
//! it. [`FolderIndex`] keeps the index in a folder beside the store. A backend that stores
//! passages elsewhere implements [`IndexWriter`] and [`IndexReader`]; what is indexed and how
//! it is ranked stays the same. A [`Query`] is answered within a [`Scope`], by full text, by
//! semantic similarity, or by both fused; every score lists its parts.
//!
//! Everything works offline: the static embedding model is compiled into the binary. A
//! [`Reranker`] can be added to rescore the first hits: a [`ContextualModel`] loaded from a
//! folder, or a remote one.
//!
//! This crate reads neither the clock nor the environment.

mod analysis;
mod batch_overlay;
mod casefold;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "contextual")]
mod contextual;
mod date;
mod document;
mod encoding_cache;
mod error;
mod folder_index;
mod fusion;
mod hit;
mod index;
mod index_reader;
mod index_state;
mod index_writer;
mod indexer;
mod late_interaction;
mod passage;
pub mod private_files;
mod query;
mod query_syntax;
mod query_terms;
mod rank;
mod rerank;
mod scope;
mod search;
mod snippet;
mod spelling;
mod static_model;
mod stop_words;
mod top_k;
mod vector;
mod window;
mod word_split;

#[cfg(feature = "contextual")]
pub use contextual::{ContextualError, ContextualModel};
pub use date::DateError;
pub use document::{Document, TermCounts};
pub use encoding_cache::{EncodingCache, EncodingCaches, OwnerEncodingCache, QuantizedRows};
pub use error::{ErrorKind, RecallError};
pub use folder_index::FolderIndex;
pub use hit::{Hit, QueryResults, ScoreParts};
pub use index::Index;
pub use index_reader::{DocFrequencies, IndexReader, PassageId, StoredPassage};
pub use index_state::{Anchor, IndexState};
pub use index_writer::{IndexWriter, OwnedSession};
pub use indexer::Indexer;
pub use passage::{Batch, Passage, Removal};
pub use query::{Mode, Query};
pub use query_syntax::{Filter, ParseError, ParsedQuery, parse_query};
pub use query_terms::has_searchable_words;
pub use rerank::{RerankError, RerankPassage, RerankQuery, RerankReport, Reranker};
pub use scope::{Scope, SessionRange};
pub use snippet::Snippet;
pub use spelling::FuzzyTerm;
pub use static_model::{BYTES as STATIC_BYTES, DIGEST as STATIC_DIGEST, text_similarity};
pub use top_k::TopK;
pub use vector::Vector;
pub use word_split::{extract_terms, phrase_terms};
