//! What can be wrong with one line.
//!
//! Every variant is one sentence for the person who has the file open, without the
//! line's number: the reader that counts lines adds it.

use throughline_model::MAX_JSON_DEPTH;

/// Why a line of a file could not be read. The lines around it are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// Bytes that are no text.
    #[error("not UTF-8 at byte {byte}")]
    NotUtf8 {
        /// The first offending byte of the line, counted from 1.
        byte: usize,
    },
    /// More than the reader is willing to hold in memory.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The most bytes a line may have.
        limit: usize,
    },
    /// Text that is no JSON.
    #[error("not JSON: {reason} at column {column}")]
    NotJson {
        /// Where, counted in bytes from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A member is there twice, so that it is unclear which is meant.
    #[error("not a message: {0}")]
    DuplicateMember(String),
    /// Nobody speaks.
    #[error("there is no `role`")]
    MissingRole,
    /// Somebody unknown speaks.
    #[error("{0:?} is not a role: use user, assistant, system or tool")]
    UnknownRole(String),
    /// A time that cannot be understood.
    #[error("`at` is {0}, which is neither an RFC 3339 time nor a number of seconds")]
    BadTime(String),
    /// Nothing is said.
    #[error("there is neither `content` nor `tool_calls`")]
    MissingContent,
    /// A member of another type than it must have.
    #[error("`{member}` is not {expected}")]
    BadMember {
        /// Which.
        member: &'static str,
        /// What it should have been.
        expected: &'static str,
    },
    /// An element of `content` that is no block.
    #[error("block {index} of `content` cannot be read: {reason}")]
    BadBlock {
        /// Which, counted from 1.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// An element of `tool_calls` that is no call.
    #[error("call {index} of `tool_calls` cannot be read: {reason}")]
    BadToolCall {
        /// Which, counted from 1.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// JSON, but not a line of a log.
    #[error("neither a session nor an entry of a log: {0}")]
    NotALogLine(String),
    /// JSON that not every parser could read.
    #[error("nested deeper than {MAX_JSON_DEPTH} levels")]
    TooDeep,
    /// A log of a later version.
    #[error("the log is of version {0}, and only version 1 can be read")]
    UnsupportedVersion(u64),
    /// An entry that belongs to no session.
    #[error("an entry without a readable session line before it")]
    MissingSession,
}

impl LineError {
    /// The error of a text that the JSON parser refused.
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        Self::NotJson {
            column: error.column(),
            reason: parser_message(error),
        }
    }
}

/// What the JSON parser says, without the place it says it of.
pub(crate) fn parser_message(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(place) = text.rfind(" at line ") {
        text.truncate(place);
    }
    text
}
