//! The nouns of Throughline, and the one function that gives them meaning.
//!
//! A session is an append-only log of [`Entry`] values, and everything else that
//! is known about it is a fold of that log: [`Record`] is what every store keeps
//! beside the log, [`WorkingSet`] and [`CheckpointView`] are made when asked for.
//!
//! This crate does no I/O and reads neither clock nor environment. What is stored
//! is described, byte by byte, in `docs/data-model.md`.

mod birth;
mod block;
mod body;
mod card;
mod checkpoint_view;
mod digest;
mod entry;
mod facts;
mod files;
mod fold;
pub mod glance;
mod host;
mod id;
mod incoming;
mod json;
mod lineage;
mod name;
mod nesting;
mod owner;
mod project;
mod remembered;
mod secret;
mod spec;
mod standing;
mod summary;
mod token;
mod usage;
mod working_set;

pub use birth::Birth;
pub use block::{Attachment, Block, Content, ToolCall, ToolResult};
pub use body::{
    AgentRef, Body, Checkpoint, Merge, MergeHow, Message, NamedBy, Restored, Role, Tombstone,
};
pub use card::{Card, PREVIEW_CHARS, Status};
pub use checkpoint_view::{CheckpointStats, CheckpointSummary, CheckpointView, CompactionInfo};
pub use digest::{Digest, GENESIS};
pub use entry::{DecodeError, Entry, NewEntry, StoredEntry, encode};
pub use facts::{Fact, Facts};
pub use files::{files_in, files_touched};
pub use fold::{Record, fold};
pub use host::is_this_machine;
pub use id::{EntryId, IdError, IdsWithin, Key, Seq, SessionId};
pub use incoming::{Happened, Identity, Incoming, IncomingEntry, IncomingSession, Origin, Passed};
pub use json::Json;
pub use lineage::Lineage;
pub use name::{Name, NameError, RESERVED_NAMES, Tag};
pub use nesting::{MAX_JSON_DEPTH, MAX_PAYLOAD_DEPTH, is_nested_deeper_than};
pub use owner::{Owner, SessionRef};
pub use project::{Mark, Project, ProjectId};
pub use remembered::{FactSource, PERSON, Remembered};
pub use secret::{SecretSpan, find_secrets, looks_secret, redact, redact_json};
pub use spec::{EmptySpec, SessionSpec};
pub use standing::{CheckpointMark, Noted, Span, Standing};
pub use summary::{SUMMARY_END, SUMMARY_START, Summary, SummaryError};
pub use token::{TOKEN_PREFIX, Token, TokenId, TokenRole};
pub use usage::Usage;
pub use working_set::{RecentMessage, TokenBudget, WorkingSet};

pub use jiff::Timestamp;

/// The instant cut to the microsecond, which is what every store keeps.
///
/// Entries are hashed with their time: a finer instant would not survive storage
/// and the digest would not verify.
pub fn to_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
