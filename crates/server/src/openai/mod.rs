//! The OpenAI Conversations and Responses APIs, on the same sessions.
//!
//! A conversation is a session: `conv_` and the session's id. Its items are the session's messages
//! that the model may see; cleared and rewound ones are not among them. An item that is added
//! becomes one entry; an entry stored by a turn may be shown as several items, such as reasoning,
//! text and tool calls. Fields that have no equivalent in our blocks are stored next to them, and
//! items of unknown types verbatim.
//!
//! Invariant: an item is returned as it was written, with shorthand expanded, and its id never
//! changes.

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

/// Builds the routes under `/v1`.
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

/// Converts a problem to an OpenAI error response.
pub(crate) fn error_response(problem: &Problem) -> Response {
    OpenAiError::from(problem.clone()).into_response()
}
