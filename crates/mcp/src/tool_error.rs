//! Errors of MCP tools, with hints that an agent can act on.

use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use throughline::{Error, ErrorKind, StoreError};

/// Why a tool call failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct ToolError {
    text: String,
    kind: ErrorKind,
}

impl ToolError {
    /// Creates an error for an invalid request.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: ErrorKind::Invalid,
        }
    }

    /// Creates an error for something that does not exist.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: ErrorKind::NotFound,
        }
    }
}

/// Returns a hint for an error, if there is one.
fn error_hint(error: &Error) -> Option<String> {
    Some(match error {
        Error::NoMatch(_) | Error::NotListed { .. } | Error::NoSessions => {
            "use list_sessions or search_sessions to find it".to_owned()
        }
        Error::Store(StoreError::NoSuchSession(_)) => "use list_sessions to find it".to_owned(),
        Error::Store(StoreError::Moved { found, .. }) => {
            format!("read the new entries with read_session, then send head {found}")
        }
        Error::Ambiguous(ambiguous) => {
            let ids = ambiguous.candidates.iter().map(|info| info.id.as_str());
            format!("use one of the ids: {}", ids.collect::<Vec<_>>().join(", "))
        }
        Error::IsTranscriptPath(_) => "a session is named by its id, name or key".to_owned(),
        Error::NoSuchProject(_) => {
            "omit project to use the owner's memory, or pass the project's id".to_owned()
        }
        Error::Memory(throughline::MemoryError::Secret(_)) => {
            "leave the secret out; remember where it is stored instead".to_owned()
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

/// A failed tool call returns the error as text for the model to read.
impl IntoCallToolResult for ToolError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::error(vec![ContentBlock::text(self.text)]).into())
    }
}

/// Everywhere else the protocol has error codes.
impl From<ToolError> for ErrorData {
    fn from(refusal: ToolError) -> Self {
        match refusal.kind {
            ErrorKind::NotFound => Self::resource_not_found(refusal.text, None),
            ErrorKind::Conflict | ErrorKind::Invalid => Self::invalid_params(refusal.text, None),
            ErrorKind::Damaged | ErrorKind::Unavailable => Self::internal_error(refusal.text, None),
        }
    }
}
