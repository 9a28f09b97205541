//! Builds the request to send to a model from a session.
//!
//! From a session's record and its visible entries, [`build_request`] builds the best
//! [`Request`] that fits a budget, section by section, with token counts and a list of
//! what was left out. A [`Policy`] sets the size of the sections, when to compact and
//! what to keep; [`plan_compaction`] decides how far a checkpoint reaches.
//!
//! Sections are ordered by stability (agent, context, memory, checkpoint, recent,
//! recalled, message), so that consecutive requests share a prefix and a provider's
//! prompt cache stays valid.
//!
//! This crate does no I/O and reads neither the clock nor the environment. Problems in
//! a log are repaired in the request, never in the log, and every repair is reported.

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
