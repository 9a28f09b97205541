//! Durable sessions for AI agents: the Throughline library.
//!
//! A session is an append-only log of messages and other entries. An entry is durable
//! when the call that appends it returns, and is never lost or renumbered. Sessions can
//! be resumed, forked, merged, searched and summarized. [`Throughline`] is the entry
//! point; [`Session`] has the operations on one session.
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
//! The library uses neither the terminal nor environment variables. Time and randomness
//! come from an [`Environment`], which a program may replace with its own.

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

// The domain model is re-exported in full, so that programs need only this crate.

// Domain model: sessions, log entries and message content.
pub use throughline_model::{
    AgentRef, Attachment, Block, Body, Content, DecodeError, Digest, Entry, EntryId,
    EntryIdNamespace, GENESIS, IdError, Json, Key, Lineage, MAX_JSON_DEPTH, MAX_PAYLOAD_DEPTH,
    Merge, MergeMode, Message, Name, NameError, NameSource, NewEntry, RESERVED_NAMES, Role, Seq,
    SessionHeader, SessionId, SessionRestore, StoredEntry, Tag, Timestamp, Tombstone, ToolCall,
    ToolResult, Usage, encode_payload, is_nested_deeper_than, truncate_to_micros,
};
// Domain model: state derived from a log, checkpoints and summaries.
pub use throughline_model::{
    Checkpoint, CheckpointRef, CheckpointStats, CheckpointSummary, CheckpointView, CompactionInfo,
    Note, PREVIEW_CHARS, RecentMessage, Record, SUMMARY_END, SUMMARY_START, SessionInfo,
    SessionState, Span, Status, Summary, SummaryError, TokenBudget, WorkingSet, extract_files,
    extract_touched_files, fold,
};
// Domain model: owners, projects, API tokens and references to sessions.
pub use throughline_model::{
    ApiToken, EmptySpec, Owner, Project, ProjectId, ProjectMarker, SessionRef, SessionSpec,
    TOKEN_PREFIX, TokenId, TokenRole, is_loopback_host,
};
// Domain model: facts.
pub use throughline_model::{Fact, FactSource, Facts, PERSON, RememberedFact};
// Domain model: records of an import, and the module that formats values for people.
pub use throughline_model::{
    EntryIdentity, ImportEvent, IncomingEntry, IncomingItem, IncomingOrigin, IncomingSession,
    SkippedRecord, format,
};
// Domain model: detection and redaction of secrets.
pub use throughline_model::{SecretSpan, detect_secret, find_secrets, redact, redact_json};
