//! Why something was not done, in words an agent can act on.

use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use throughline::{Error, ErrorKind, StoreError};

/// Why something was not done, and what to do about it.
#[derive(Debug)]
pub(crate) struct ToolError {
    text: String,
    kind: ErrorKind,
}

impl ToolError {
    /// What was asked for makes no sense.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: ErrorKind::Invalid,
        }
    }

    /// There is no such thing.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: ErrorKind::NotFound,
        }
    }
}

/// What an agent can do about an error.
fn error_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoMatch(_) | Error::NotListed { .. } | Error::NoSessions => {
            "list_sessions and search_sessions tell which there are".to_owned()
        }
        Error::Store(StoreError::NoSuchSession(_)) => {
            "list_sessions tells which there are".to_owned()
        }
        Error::Store(StoreError::Moved { found, .. }) => {
            format!("read what came since with read_session, then send head {found}")
        }
        Error::Ambiguous(ambiguous) => {
            let ids = ambiguous.candidates.iter().map(|card| card.id.as_str());
            format!("use one of the ids: {}", ids.collect::<Vec<_>>().join(", "))
        }
        Error::IsTranscriptPath(_) => "a session is named by its id, name or key".to_owned(),
        Error::NoSuchProject(_) => {
            "leave project out for what holds everywhere, or use the project's id".to_owned()
        }
        Error::Memory(throughline::MemoryError::Secret(_)) => {
            "say it without the secret; where it is kept is worth remembering, not what it is"
                .to_owned()
        }
        _ => return None,
    })
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(under) = cause {
            let more = under.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = under.source();
        }
        if let Some(hint) = error_hint(&error) {
            text = format!("{text}; {hint}");
        }
        let kind = error.kind();
        Self { text, kind }
    }
}

/// A tool that could not do it says why, for the model to read.
impl IntoCallToolResult for ToolError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::error(vec![ContentBlock::text(self.text)]).into())
    }
}

/// Elsewhere the protocol has codes for it.
impl From<ToolError> for ErrorData {
    fn from(refusal: ToolError) -> Self {
        match refusal.kind {
            ErrorKind::NotFound => Self::resource_not_found(refusal.text, None),
            ErrorKind::Conflict | ErrorKind::Invalid => Self::invalid_params(refusal.text, None),
            ErrorKind::Damaged | ErrorKind::Unavailable => Self::internal_error(refusal.text, None),
        }
    }
}
