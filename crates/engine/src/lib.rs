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

mod claim;
mod compact;
mod continuation;
mod environment;
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
mod request;
mod resolve;
mod responder;
mod retrieval;
mod safe_cut;
mod session;
mod session_tree;
mod summary;
mod throughline;
mod title;
mod token;
mod turn;

pub use claim::TurnClaim;
pub use compact::{CompactOptions, CompactOutcome, Compaction, CompactionEvent};
pub use continuation::{Acknowledgement, ParentSession};
pub use environment::{Environment, SystemEnvironment};
pub use error::{AmbiguousMatch, Error};
pub use health::{HealthFinding, HealthOptions, HealthReport, IndexProblem, check_files};
pub use import::{ImportRecord, ImportReport, Importer, Ledger, LedgerRow};
pub use lease::LeaseWait;
pub use memory::{
    AddFactOutcome, AddFactStatus, FactMatch, Memory, MemoryError, MemoryScope, NewFact,
    ProposalMode, ProposalReport, Similarity, word_overlap,
};
pub use merge::{MergeOutcome, MergeStyle};
pub use migrate::{MigrationReport, SessionDifference, migrate};
pub use open::{OpenOptions, StoreAddress};
pub use purge::{PurgeOptions, PurgeReport};
pub use request::{METADATA_DOCUMENT, POLICY_DOCUMENT, RequestOptions};
pub use responder::Responder;
pub use retrieval::{
    EmbeddingReranker, IndexProgress, IndexProgressSink, IndexRebuild, IndexWait, LazyReranker,
    RerankBudget, SearchOptions, SearchResults,
};
pub use session::{ConflictPolicy, ForkOutcome, Session};
pub use session_tree::SessionTree;
pub use summary::ExitSummary;
pub use throughline::{NewSession, Throughline};
pub use token::{IssuedToken, NewToken};
pub use turn::{AnswerOptions, EventSink, PostedMessage, Toolbox, TurnEvent, TurnOutcome};

pub use throughline_context as context;
pub use throughline_llm as llm;
pub use throughline_model::*;
pub use throughline_postgres::{is_unavailable, redact_url};
pub use throughline_recall as recall;
pub use throughline_remote::{BearerToken, RemoteError, ServerUrl};
pub use throughline_sqlite::{
    Durability, Loss, RestoreError, RestoreOptions, RestoreReport, SalvageReport, restore_backup,
    salvage,
};
pub use throughline_store::{
    Append, AppendKind, AppendOutcome, Candidate, Change, ChangeKind, CheckReport, CreateOutcome,
    Cursor, CursorError, ErrorKind, Expect, Fence, Finding, Lease, LeaseHolder, OnConflict, Page,
    Position, ProgressCallback, ReadRange, SessionFilter, SessionScope, Store, StoreError,
    TrashedSession,
};
