//! The transcript format: a session as Markdown, to be read by people and resumed from.
//!
//! ```markdown
//! # Sally Conversation
//!
//! **Session ID:** s1
//! **Date:** 2026-11-15T10:00:00.000000+00:00
//! **Agent:** Sally
//! **Total Queries:** 1
//!
//! ---
//!
//! ## Query 1 (10:00:05)
//! **You:** Let's implement the rate limiter
//!
//! **Sally:** Done.
//!
//! *Time: 3.2s | Tokens: 345 (in: 123, out: 222)*
//!
//! ---
//!
//! <!-- SESSION_SUMMARY_START -->
//! …
//! <!-- SESSION_SUMMARY_END -->
//! ```
//!
//! Invariant: message text is never mistaken for structure; see [`escape`].

mod escape;
mod footer;
mod header;
mod notes;
mod reader;
mod render_blocks;
mod section;
mod writer;

pub use header::TranscriptHeader;
pub use reader::{Restoration, Transcript, TranscriptError, read_transcript};
pub use section::Query;
pub use writer::MarkdownWriter;

#[cfg(test)]
mod event_tests;
#[cfg(test)]
mod hostile_text;
#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod writer_tests;
