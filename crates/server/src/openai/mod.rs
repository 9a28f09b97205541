//! The OpenAI Conversations and Responses APIs, on the same sessions.
//!
//! A conversation is a session: `conv_` and the session's id. Its items are what the
//! session's messages say and the model may see; what was cleared or taken back is not
//! among them. An item that is added is an entry of its own; an entry that a turn has
//! kept may come as several items, such as a thought, a text and calls. What an item has
//! that our blocks have not is kept beside them, and items of unknown types as they came.
//!
//! Invariant: what is read back is what was written, its shorthand written out; an item's
//! id never changes.

mod conversation;
mod conversations;
mod error;
mod id;
mod item;
mod items;
mod metadata;
mod models;
mod response_request;
mod response_stream;
mod response_view;
mod responses;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::{App, Problem};
use error::OpenAiError;

/// Everything under `/v1`.
pub(crate) fn router() -> Router<App> {
    Router::new()
        .route(
            "/v1/conversations",
            get(conversations::list).post(conversations::create),
        )
        .route(
            "/v1/conversations/{id}",
            get(conversations::retrieve)
                .post(conversations::update)
                .delete(conversations::delete),
        )
        .route(
            "/v1/conversations/{id}/items",
            get(items::list).post(items::add),
        )
        .route(
            "/v1/conversations/{id}/items/{item}",
            get(items::retrieve).delete(items::delete),
        )
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{response}", get(responses::retrieve))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*model}", get(models::retrieve))
}

/// A problem as these clients expect it.
pub(crate) fn error_response(problem: &Problem) -> Response {
    OpenAiError::from(problem.clone()).into_response()
}
