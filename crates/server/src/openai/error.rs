//! Errors in the format that OpenAI clients expect.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::Problem;

/// A problem, and the request parameter it is about.
#[derive(Clone, Debug)]
pub(crate) struct OpenAiError {
    problem: Box<Problem>,
    param: Option<String>,
    /// Whether the input was stored, so that sending it again would duplicate it.
    input_stored: bool,
}

impl OpenAiError {
    /// A request parameter is invalid.
    pub(super) fn invalid_param(param: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem::bad_request("invalid_value", detail)),
            param: Some(param.into()),
            input_stored: false,
        }
    }

    /// A request parameter asks for something the server does not support.
    pub(super) fn unsupported_param(param: &str, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem::bad_request("unsupported_parameter", detail)),
            param: Some(param.to_owned()),
            input_stored: false,
        }
    }

    /// A turn is running in the conversation.
    pub(super) fn conversation_locked() -> Self {
        let detail =
            "a response is in progress in this conversation; try again when it has finished";
        Self {
            problem: Box::new(Problem::bad_request("conversation_locked", detail)),
            param: Some("conversation".to_owned()),
            input_stored: false,
        }
    }

    /// The conversation does not exist or belongs to another owner.
    pub(super) fn conversation_not_found(id: &str) -> Self {
        let detail = format!("Conversation with id '{id}' not found.");
        Problem::not_found("conversation_not_found", detail).into()
    }

    /// The item does not exist in the conversation.
    pub(super) fn item_not_found(id: &str) -> Self {
        let detail = format!("Item with id '{id}' not found in this conversation.");
        Problem::not_found("item_not_found", detail).into()
    }

    /// The model does not exist.
    pub(super) fn model_not_found(id: &str) -> Self {
        let detail = format!("The model '{id}' does not exist.");
        Problem::not_found("model_not_found", detail).into()
    }

    /// The response does not exist.
    pub(super) fn response_not_found(id: &str) -> Self {
        let detail = format!(
            "Response with id '{id}' not found. Responses created with \"store\": false are not stored."
        );
        Problem::not_found("response_not_found", detail).into()
    }

    /// Marks that the input was stored before the error occurred.
    #[must_use]
    pub(super) fn after_storing_input(self) -> Self {
        Self {
            input_stored: true,
            ..self
        }
    }

    /// The error message.
    pub(super) fn message(&self) -> &str {
        &self.problem.detail
    }
}

impl From<Problem> for OpenAiError {
    fn from(mut problem: Problem) -> Self {
        let mut param = None;
        match problem.code {
            "session_busy" => return Self::conversation_locked(),
            "session_in_trash" | "session_not_found" => {
                problem.status = StatusCode::NOT_FOUND;
                problem.code = "conversation_not_found";
            }
            "model_not_offered" => {
                problem.code = "model_not_found";
                param = Some("model".to_owned());
            }
            "unauthorized" => problem.code = "invalid_api_key",
            "too_many_requests"
            | "too_many_concurrent_requests"
            | "too_many_streams"
            | "too_many_bytes" => problem.code = "rate_limit_exceeded",
            _ => {}
        }
        // OpenAI uses 400 where the native API uses 422.
        if problem.status == StatusCode::UNPROCESSABLE_ENTITY {
            problem.status = StatusCode::BAD_REQUEST;
        }
        Self {
            problem: Box::new(problem),
            param,
            input_stored: false,
        }
    }
}

impl From<throughline::Error> for OpenAiError {
    fn from(error: throughline::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<throughline::StoreError> for OpenAiError {
    fn from(error: throughline::StoreError) -> Self {
        Problem::from(error).into()
    }
}

/// The OpenAI error type of a status.
fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::FORBIDDEN => "permission_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let Problem {
            status,
            code,
            detail,
            retry_after,
            ..
        } = *self.problem;
        let body = json!({
            "error": {
                "message": detail,
                "type": error_type(status),
                "param": self.param,
                "code": code,
            }
        });
        let mut response = (status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Bearer realm=\"throughline\"");
            headers.insert(header::WWW_AUTHENTICATE, realm);
        }
        // By default, clients retry conflicts and input that was already stored.
        if self.input_stored || status == StatusCode::CONFLICT {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }
}
