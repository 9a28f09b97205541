//! The OpenAI Conversations and Responses APIs, on the same sessions.

use axum::Router;
use axum::response::{IntoResponse, Response};

use crate::{App, Problem};

/// Everything under `/v1`.
pub(crate) fn router() -> Router<App> {
    Router::new()
}

/// A problem as these clients expect it.
pub(crate) fn refusal(problem: &Problem) -> Response {
    problem.clone().into_response()
}
