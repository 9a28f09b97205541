//! Sessions that last, for AI agents.
//!
//! A session is an append-only log. What is appended is durable when the call
//! returns, is never lost or renumbered, and can be resumed, forked and merged.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! use throughline::{Message, NewSession, Role, Throughline};
//!
//! let tl = Throughline::open("memory:").await?;
//! let session = tl.create(NewSession::named("auth")?).await?;
//!
//! session.append(Message::text(Role::User, "How do we store sessions?")).await?;
//! session.append(Message::text(Role::Assistant, "In Redis, for now.")).await?;
//!
//! let fork = session.fork(None, NewSession::default()).await?.session;
//! fork.append(Message::text(Role::User, "And if we used Postgres?")).await?;
//!
//! assert_eq!(session.tail(10).await?.len(), 2);
//! assert_eq!(fork.tail(10).await?.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library touches no terminal and no environment. Time and chance come from a
//! [`World`], which a program may replace with its own.

mod boundary;
mod chain;
mod claim;
mod compact;
mod error;
mod health;
mod import;
mod lease;
mod memory;
mod merge;
mod migrate;
mod offline;
mod open;
mod project;
mod purge;
mod recall;
mod request;
mod resolve;
mod session;
mod summary;
mod throughline;
mod title;
mod token;
mod tree;
mod turn;
mod voice;
mod world;

pub use chain::{Acknowledgement, Parent};
pub use claim::TurnClaim;
pub use compact::{Compacted, Compacting, Compaction, CompactionEvent};
pub use error::{Ambiguous, Error};
pub use health::{HealthFinding, HealthOptions, HealthReport, IndexProblem, check_files};
pub use import::{Arriving, ImportReport, Importer, Ledger, LedgerRow};
pub use lease::LeaseWait;
pub use memory::{
    Added, AddedHow, Found, Memory, MemoryError, MemoryScope, NewFact, Proposed, Proposing,
    Similar, word_overlap,
};
pub use merge::{MergeStyle, Merged};
pub use migrate::{Differing, Migrated, migrate};
pub use open::{Address, Opening};
pub use purge::{Purge, Purged};
pub use recall::{
    Again, Caught, Embeddings, Fed, IndexRebuild, Patience, Searched, Searching, Within,
};
pub use request::{Asking, METADATA_DOCUMENT, POLICY_DOCUMENT};
pub use session::{Conflict, Forked, Session};
pub use summary::LeftBehind;
pub use throughline::{NewSession, Throughline};
pub use token::{MadeToken, NewToken};
pub use tree::Tree;
pub use turn::{Said, Tell, Toolbox, Turn, TurnEvent, Turned};
pub use voice::Voice;
pub use world::{SystemWorld, World};

pub use throughline_context as context;
pub use throughline_llm as llm;
pub use throughline_model::*;
pub use throughline_postgres::{is_away, redacted};
pub use throughline_recall as recalling;
pub use throughline_remote::{ServerUrl, TalkError, TokenText};
pub use throughline_sqlite::{
    Durability, Loss, RestoreError, RestoreOptions, RestoreReport, Salvaged, restore_backup,
    salvage,
};
pub use throughline_store::{
    Append, Appended, Candidate, Change, Created, Cursor, CursorError, ErrorKind, Expect, Fence,
    Filter, Finding, How, Lease, LeaseHolder, OnConflict, Page, Position, Progress, Read, Report,
    Scope, Store, StoreError, Trashed, What,
};
