//! What went wrong, as OpenAI's clients expect it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::Problem;

/// A problem, and the member of the request it is about.
#[derive(Clone, Debug)]
pub(crate) struct OpenAiError {
    problem: Box<Problem>,
    param: Option<String>,
    /// Whether what was sent is kept, so that sending it again would say it twice.
    input_stored: bool,
}

impl OpenAiError {
    /// Something in the request makes no sense.
    pub(super) fn invalid_param(param: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem::bad_request("invalid_value", detail)),
            param: Some(param.into()),
            input_stored: false,
        }
    }

    /// Something that the server cannot do.
    pub(super) fn unsupported_param(param: &str, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem::bad_request("unsupported_parameter", detail)),
            param: Some(param.to_owned()),
            input_stored: false,
        }
    }

    /// A turn is under way in the conversation.
    pub(super) fn conversation_locked() -> Self {
        let detail = "an answer is under way in this conversation; try again when it is there";
        Self {
            problem: Box::new(Problem::bad_request("conversation_locked", detail)),
            param: Some("conversation".to_owned()),
            input_stored: false,
        }
    }

    /// There is no such conversation, or it is somebody else's.
    pub(super) fn conversation_not_found(id: &str) -> Self {
        let detail = format!("Conversation with id '{id}' not found.");
        Problem::not_found("conversation_not_found", detail).into()
    }

    /// There is no such item in the conversation.
    pub(super) fn item_not_found(id: &str) -> Self {
        let detail = format!("Item with id '{id}' not found in this conversation.");
        Problem::not_found("item_not_found", detail).into()
    }

    /// There is no such model.
    pub(super) fn model_not_found(id: &str) -> Self {
        let detail = format!("The model '{id}' does not exist here.");
        Problem::not_found("model_not_found", detail).into()
    }

    /// There is no such response.
    pub(super) fn response_not_found(id: &str) -> Self {
        let detail = format!(
            "Response with id '{id}' not found. Those made with \"store\": false are not kept."
        );
        Problem::not_found("response_not_found", detail).into()
    }

    /// The same, after what was sent has been kept.
    #[must_use]
    pub(super) fn after_storing_input(self) -> Self {
        Self {
            input_stored: true,
            ..self
        }
    }

    /// What went wrong, for people.
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
        // What cannot be done as asked is a bad request there.
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

/// What kind of error a status is.
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
        // Left alone, clients send again what conflicts, and what was kept.
        if self.input_stored || status == StatusCode::CONFLICT {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }
}
