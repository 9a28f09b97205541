//! The data model of Throughline: sessions, entries and the fold that derives session
//! state.
//!
//! A session is an append-only log of [`Entry`] values; everything else known about it
//! is a fold of that log. Every store saves the [`Record`] next to the log;
//! [`WorkingSet`] and [`CheckpointView`] are computed on request.
//!
//! This crate does no I/O and reads neither the clock nor the environment. The stored
//! format is specified byte by byte in `docs/data-model.md`.

mod api_token;
mod block;
mod body;
mod checkpoint_view;
mod digest;
mod entry;
mod facts;
mod fold;
pub mod format;
mod id;
mod incoming;
mod json;
mod json_depth;
mod lineage;
mod loopback;
mod name;
mod owner;
mod project;
mod redaction;
mod remembered_fact;
mod session_header;
mod session_info;
mod session_spec;
mod session_state;
mod summary;
mod touched_files;
mod usage;
mod working_set;

pub use api_token::{ApiToken, TOKEN_PREFIX, TokenId, TokenRole};
pub use block::{Attachment, Block, Content, ToolCall, ToolResult};
pub use body::{
    AgentRef, Body, Checkpoint, Merge, MergeMode, Message, NameSource, Role, SessionRestore,
    Tombstone,
};
pub use checkpoint_view::{CheckpointStats, CheckpointSummary, CheckpointView, CompactionInfo};
pub use digest::{Digest, GENESIS};
pub use entry::{DecodeError, Entry, NewEntry, StoredEntry, encode_payload};
pub use facts::{Fact, Facts};
pub use fold::{Record, fold};
pub use id::{EntryId, EntryIdNamespace, IdError, Key, Seq, SessionId};
pub use incoming::{
    EntryIdentity, ImportEvent, IncomingEntry, IncomingItem, IncomingOrigin, IncomingSession,
    SkippedRecord,
};
pub use json::Json;
pub use json_depth::{MAX_JSON_DEPTH, MAX_PAYLOAD_DEPTH, is_nested_deeper_than};
pub use lineage::Lineage;
pub use loopback::is_loopback_host;
pub use name::{Name, NameError, RESERVED_NAMES, Tag};
pub use owner::{Owner, SessionRef};
pub use project::{Project, ProjectId, ProjectMarker};
pub use redaction::{SecretSpan, detect_secret, find_secrets, redact, redact_json};
pub use remembered_fact::{FactSource, PERSON, RememberedFact};
pub use session_header::SessionHeader;
pub use session_info::{PREVIEW_CHARS, SessionInfo, Status};
pub use session_spec::{EmptySpec, SessionSpec};
pub use session_state::{CheckpointRef, Note, SessionState, Span};
pub use summary::{SUMMARY_END, SUMMARY_START, Summary, SummaryError};
pub use touched_files::{extract_files, extract_touched_files};
pub use usage::Usage;
pub use working_set::{RecentMessage, TokenBudget, WorkingSet};

pub use jiff::Timestamp;

/// Truncates an instant to microseconds, the precision that every store supports.
///
/// Entries are hashed with their time: a more precise instant would not survive
/// storage, and the digest would no longer verify.
pub fn truncate_to_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
