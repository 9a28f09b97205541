//! What the model is sent.
//!
//! From a session's record and the entries the model may see, [`build`] makes the best
//! [`Request`] that fits a budget, section by section, with a token count for each and
//! a word on whatever was left out. A [`Policy`] says how big the sections may be, when
//! to compact and what to keep; [`plan`] says how far a checkpoint should reach.
//!
//! Sections come stable first — agent, context, memory, checkpoint, recent, recalled,
//! message — so that one request begins as the one before it did and a provider's
//! prompt cache keeps hitting.
//!
//! This crate does no I/O and reads neither clock nor environment. What is wrong in a
//! log is repaired in the request, never in the log, and every repair is reported.

mod build;
mod calibration;
mod chain;
mod elide;
mod encoding;
mod lists;
mod material;
mod overrides;
mod pairs;
mod pieces;
mod plan;
mod policy;
mod recalled;
mod recent;
mod repair;
mod request;
mod said;
mod send;
mod surrogate;
mod system;
mod tokens;
mod turn;

pub use build::build;
pub use calibration::Calibration;
pub use chain::{Restoration, banner, restoration_prompt, short_count};
pub use encoding::{Encoding, UnknownEncoding};
pub use material::{Counted, Document, EntryRef, Excerpt, Fact, Material};
pub use overrides::PolicyError;
pub use plan::{Plan, needs_compaction, plan};
pub use policy::{CompactAt, Keep, Policy, Shares};
pub use request::{
    LeftOut, Repair, RepairKind, Request, RequestError, RequestMessage, Section, SectionName,
};
pub use tokens::{
    CALL_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS, RESULT_TOKENS, content_tokens, entry_tokens,
    message_tokens,
};
