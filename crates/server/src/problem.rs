//! Errors as `application/problem+json`: the one place where errors become HTTP statuses.
//!
//! `code` is stable and meant for programs; `detail` is for people and may change.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use throughline::llm::{ModelError, ModelErrorKind};
use throughline::{Error, ErrorKind, MemoryError, Seq, SessionId, StoreError};
use utoipa::ToSchema;

use crate::ResponderError;

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The HTTP status.
    #[serde(serialize_with = "serialize_status")]
    #[schema(value_type = u16, example = 409)]
    pub status: StatusCode,
    /// Stable error code, for programs.
    #[schema(value_type = String, example = "head_moved")]
    pub code: &'static str,
    /// Short, general name of the error.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// What went wrong and what to do about it.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// The session's current last entry, where the caller expected another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub head: Option<Seq>,
    /// The session that already holds the requested key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub held_by: Option<SessionId>,
    /// Seconds after which a retry makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// The request's id, to find it in the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub request_id: Option<Box<str>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn serialize_status<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

/// Maps each error kind to its status.
fn status_for_kind(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Damaged => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The error code where nothing more specific is known.
fn default_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "not_found",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Invalid => "invalid",
        ErrorKind::Damaged => "damaged",
        ErrorKind::Unavailable => "unavailable",
    }
}

impl Problem {
    /// Creates a problem with this status and code.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            title: status.canonical_reason().unwrap_or("Failed"),
            detail: detail.into().into(),
            head: None,
            held_by: None,
            retry_after: None,
            request_id: None,
        }
    }

    /// The request is malformed (400).
    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// The request is well-formed and cannot be carried out (422).
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    /// The resource does not exist or belongs to another owner (404).
    pub fn not_found(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// The caller may not do this (403).
    pub fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    /// Sets `Retry-After`.
    #[must_use]
    pub fn with_retry_after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    fn from_kind(kind: ErrorKind, code: &'static str, detail: String) -> Self {
        let problem = Self::new(status_for_kind(kind), code, detail);
        match kind {
            ErrorKind::Unavailable => problem.with_retry_after(1),
            _ => problem,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Memory(error) => {
                let code = memory_error_code(&error);
                Self::from_kind(error.kind(), code, format_error_chain(&error))
            }
            error => {
                let code = match &error {
                    Error::NoMatch(_) | Error::NoSessions | Error::NotListed { .. } => {
                        "session_not_found"
                    }
                    Error::Ambiguous(_) => "ambiguous",
                    Error::Name(_) => "bad_name",
                    Error::Id(_) => "bad_id",
                    Error::ReservedKey(_) => "reserved_key",
                    Error::OwnerOfService(_) => "bad_owner",
                    Error::NoSuchPin(_) => "pin_not_found",
                    Error::NoCheckpoint(_) => "no_checkpoint",
                    Error::NoOrigin(_) | Error::NotAFork { .. } => "not_a_fork",
                    Error::NoSummary(_) => "no_summary",
                    Error::Request(_) => "message_too_large",
                    Error::Policy(_) => "bad_policy",
                    Error::Diverged { .. } => "diverged",
                    Error::Search(_) => "bad_query",
                    Error::NoSuchProject(_) => "project_not_found",
                    Error::MergeIntoSelf(_) => "merge_into_self",
                    other => default_code(other.kind()),
                };
                Self::from_kind(error.kind(), code, format_error_chain(&error))
            }
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NoSuchSession(_) => "session_not_found",
            StoreError::InTrash(_) => "session_in_trash",
            StoreError::NotInTrash(_) => "not_in_trash",
            StoreError::TrashedAgain { .. } => "trashed_again",
            StoreError::SessionExists(_) => "session_exists",
            StoreError::KeyTaken { .. } => "key_taken",
            StoreError::Moved { .. } => "head_moved",
            StoreError::NoSuchEntry { .. } => "entry_not_found",
            StoreError::EntryIdReused { .. } => "entry_id_reused",
            StoreError::LeaseHeld { .. } => "lease_held",
            StoreError::LeaseLost { .. } => "lease_lost",
            StoreError::NothingToAppend => "nothing_to_append",
            StoreError::NoSuchBlob(_) => "attachment_not_found",
            StoreError::NoSuchToken(_) => "token_not_found",
            StoreError::TokenExists(_) => "token_exists",
            StoreError::TooLarge { .. } => "too_large",
            StoreError::Busy { .. } => "busy",
            StoreError::DiskFull { .. } => "no_room",
            StoreError::OutOfMemory { .. } => "out_of_memory",
            StoreError::ReadOnly { .. } => "read_only",
            StoreError::OutcomeUnknown { .. } => "outcome_unknown",
            StoreError::FileReplaced { .. } => "store_replaced",
            other => default_code(other.kind()),
        };
        let mut problem = Self::from_kind(error.kind(), code, format_error_chain(&error));
        match error {
            StoreError::Moved { found, .. } => problem.head = Some(found),
            StoreError::NoSuchEntry { head, .. } => problem.head = Some(head),
            StoreError::KeyTaken { held_by, .. } => problem.held_by = Some(held_by),
            StoreError::TooLarge { .. } => {
                problem.status = StatusCode::PAYLOAD_TOO_LARGE;
                problem.title = "Payload Too Large";
            }
            _ => {}
        }
        if problem.status.is_server_error() {
            // The detail of a decoding error may quote stored content, so it is not logged.
            let detail = match problem.code {
                "damaged" => "",
                _ => &*problem.detail,
            };
            tracing::error!(code, detail, "the store failed");
        }
        problem
    }
}

impl From<ResponderError> for Problem {
    fn from(error: ResponderError) -> Self {
        match error {
            ResponderError::Engine(error) => error.into(),
            ResponderError::Invalid(why) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_agent", why)
            }
            ResponderError::NoSuchModel { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "model_not_offered",
                error.to_string(),
            ),
            ResponderError::NoSuchAgent { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "agent_not_offered",
                error.to_string(),
            ),
        }
    }
}

/// Why a model returned no answer or an incomplete one.
impl From<&ModelError> for Problem {
    fn from(error: &ModelError) -> Self {
        let (status, code) = match error.kind() {
            ModelErrorKind::TooLong => (StatusCode::UNPROCESSABLE_ENTITY, "request_too_long"),
            ModelErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "model_unavailable"),
            ModelErrorKind::Key => (StatusCode::BAD_GATEWAY, "model_key_refused"),
            ModelErrorKind::NotFound => (StatusCode::BAD_GATEWAY, "model_not_found"),
            ModelErrorKind::Incomplete => (StatusCode::BAD_GATEWAY, "answer_incomplete"),
            ModelErrorKind::Invalid => (StatusCode::BAD_GATEWAY, "answer_invalid"),
            ModelErrorKind::Refused => (StatusCode::BAD_GATEWAY, "model_refused"),
            _ => (StatusCode::BAD_GATEWAY, "model_failed"),
        };
        Self::new(status, code, format_error_chain(error))
    }
}

fn memory_error_code(error: &MemoryError) -> &'static str {
    match error {
        MemoryError::Secret(_) => "looks_secret",
        MemoryError::NoSuchFact { .. } => "fact_not_found",
        MemoryError::Forgotten(_) => "fact_forgotten",
        MemoryError::Superseded { .. } => "fact_superseded",
        MemoryError::TooLong { .. } => "too_large",
        error => default_code(error.kind()),
    }
}

/// Formats an error and its sources on one line.
fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"throughline\""),
            );
        }
        // For the guard, which adds the request id and picks the format.
        response.extensions_mut().insert(self);
        response
    }
}
