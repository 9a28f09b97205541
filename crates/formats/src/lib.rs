//! Readers and writers for sessions in files, one module per format.
//!
//! Our own formats, each with one purpose:
//!
//! | format | for | reader | writer |
//! |---|---|---|---|
//! | message lines | appending and importing from anywhere | [`MessageLines`], [`parse_message`] | |
//! | log | moving sessions without losing a byte | [`LogItems`] | [`LogWriter`] |
//! | document | one session as one JSON value | [`read_document`] | [`DocumentWriter`] |
//! | transcript | people, and resuming from a file | [`read_transcript`] | [`MarkdownWriter`] |
//! | page | people, and printing | | [`HtmlWriter`] |
//! | memory section | a project's AGENTS.md | [`read_memory`] | [`write_memory`] |
//!
//! For other systems, [`read_source`] reads the sessions of a [`SourceFormat`], and
//! [`ClaudeCodeWriter`], [`CodexWriter`], [`PiWriter`] and the [`Layout`]s of the reference
//! systems write them.
//!
//! Message lines are read leniently, because they come from other systems: roles, blocks
//! and figures are accepted under the names those use, and what has no counterpart here is
//! stored as it was written. Log and document are read strictly, because they are ours:
//! payloads pass through as text, so that their digests verify.
//!
//! Nothing here reads the clock, and only the readers of other systems' sources open files;
//! the others take any [`std::io::BufRead`], and writers any [`std::io::Write`]. Readers
//! accept arbitrary bytes: they return an error that says what is wrong, for the one line
//! if the format has lines.
//!
//! ```
//! use throughline_formats::parse_message;
//!
//! let line = parse_message(r#"{"session":"auth","role":"human","content":"hello"}"#)?;
//! assert_eq!(line.session.as_deref(), Some("auth"));
//! assert_eq!(line.message.content.to_text(), "hello");
//! # Ok::<(), throughline_formats::LineError>(())
//! ```

mod blocks;
mod error;
mod json_members;
mod json_string;
mod line_reader;
mod log_objects;
mod markdown;
mod memory_section;
mod message_lines;
mod message_parser;
mod readers;
mod session_document;
mod session_log;
mod surrogate;
mod writers;

pub use error::LineError;
pub use line_reader::DEFAULT_LINE_LIMIT;
pub use markdown::{
    MarkdownWriter, Query, Restoration, Transcript, TranscriptError, TranscriptHeader,
    read_transcript,
};
pub use memory_section::{
    MEMORY_END, MEMORY_START, MemoryLine, MemorySectionError, read_memory, replace_memory,
    write_memory,
};
pub use message_lines::MessageLines;
pub use message_parser::{MessageLine, parse_message};
pub use readers::{
    DiscoveryContext, ReadError, RecordSink, Source, SourceCursor, SourceFormat, UnknownFormat,
    read as read_source,
};
pub use session_document::{Document, DocumentError, DocumentWriter, read_document};
pub use session_log::{LogItem, LogItems, LogWriter, is_log};
pub use writers::{
    Blobs, ClaudeCodeWriter, CodexWriter, ExportMetadata, HtmlWriter, Layout, PiWriter,
    SessionExport, SessionWriter, summary_to_text as plain_summary,
};
