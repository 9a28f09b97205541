//! The error for one line of a file.
//!
//! Each message is one sentence for the user, without the line number, which the reader
//! that counts lines adds.

use throughline_model::MAX_JSON_DEPTH;

/// Why a line could not be read. Other lines are not affected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is not valid UTF-8.
    #[error("not UTF-8 at byte {byte}")]
    NotUtf8 {
        /// The first invalid byte of the line, counted from 1.
        byte: usize,
    },
    /// The line is longer than the reader's limit.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// Maximum length of a line in bytes.
        limit: usize,
    },
    /// The line is not valid JSON.
    #[error("not JSON: {reason} at column {column}")]
    NotJson {
        /// Position in bytes, counted from 1.
        column: usize,
        /// The parser's message.
        reason: String,
    },
    /// The JSON is not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// The object is not a valid message, for example because a field is duplicated.
    #[error("not a message: {0}")]
    DuplicateMember(String),
    /// The role is missing.
    #[error("there is no `role`")]
    MissingRole,
    /// The role is unknown.
    #[error("{0:?} is not a role: use user, assistant, system or tool")]
    UnknownRole(String),
    /// The time cannot be parsed.
    #[error("`at` is {0}, which is neither an RFC 3339 time nor a number of seconds")]
    BadTime(String),
    /// There is no content.
    #[error("there is neither `content` nor `tool_calls`")]
    MissingContent,
    /// A field has the wrong type.
    #[error("`{member}` is not {expected}")]
    BadMember {
        /// The field.
        member: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// An element of `content` is not a valid block.
    #[error("block {index} of `content` cannot be read: {reason}")]
    BadBlock {
        /// Its index, counted from 1.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// An element of `tool_calls` is not a valid call.
    #[error("call {index} of `tool_calls` cannot be read: {reason}")]
    BadToolCall {
        /// Its index, counted from 1.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The JSON is neither a session nor an entry of a log.
    #[error("neither a session nor an entry of a log: {0}")]
    NotALogLine(String),
    /// The JSON is nested too deeply.
    #[error("nested deeper than {MAX_JSON_DEPTH} levels")]
    TooDeep,
    /// The log has a newer version.
    #[error("log version {0} is not supported: only version 1 can be read")]
    UnsupportedVersion(u64),
    /// The entry does not follow a session line.
    #[error("the entry has no valid session line before it")]
    MissingSession,
}

impl LineError {
    /// Converts an error of the JSON parser.
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        Self::NotJson {
            column: error.column(),
            reason: parser_message(error),
        }
    }
}

/// Returns the JSON parser's message without its position.
pub(crate) fn parser_message(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(place) = text.rfind(" at line ") {
        text.truncate(place);
    }
    text
}
