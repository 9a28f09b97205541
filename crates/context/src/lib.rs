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

mod assemble_messages;
mod build_request;
mod calibration;
mod compaction_plan;
mod elide;
mod encoding;
mod list_section;
mod lone_surrogates;
mod policy;
mod policy_overrides;
mod recalled_section;
mod recent_turns;
mod repair;
mod request;
mod request_inputs;
mod restoration;
mod safe_cuts;
mod sendable_blocks;
mod system_sections;
mod token_cost;
mod turn;
mod visible_entries;

pub use build_request::build_request;
pub use calibration::Calibration;
pub use compaction_plan::{CompactionPlan, needs_compaction, plan_compaction};
pub use encoding::{Encoding, UnknownEncoding};
pub use policy::{CompactionTrigger, Policy, Retention, SectionShares};
pub use policy_overrides::PolicyError;
pub use request::{
    Omission, Repair, RepairKind, Request, RequestError, RequestMessage, Section, SectionName,
};
pub use request_inputs::{
    ContextDocument, CountedEntry, EntryRef, Excerpt, MemoryFact, RequestInputs,
};
pub use restoration::{
    Restoration, abbreviate_count, render_restoration_prompt, render_resume_banner,
};
pub use token_cost::{
    CALL_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS, RESULT_TOKENS, count_content_tokens,
    count_entry_tokens, count_message_tokens,
};
