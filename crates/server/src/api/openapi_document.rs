//! The parts of the OpenAPI document that are the same for every route.

use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, ResponseBuilder};

use crate::{App, Problem};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Throughline",
        description = "Durable sessions for AI agents.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem)),
    tags(
        (name = "sessions", description = "Conversations, each an append-only log"),
        (name = "entries", description = "Entries of a session"),
        (name = "turns", description = "Ask questions and stream answers"),
        (name = "context", description = "What is sent to the model"),
        (name = "lineage", description = "Forks, merges, continuations"),
        (name = "memory", description = "Facts that outlive sessions"),
        (name = "events", description = "Live change events"),
        (name = "admin", description = "Tokens and users"),
        (name = "server", description = "The server itself")
    )
)]
struct ApiDocument;

/// Returns the document without routes.
pub(super) fn base_document() -> OpenApi {
    ApiDocument::openapi()
}

/// Errors that any route may return.
const COMMON_PROBLEMS: [(&str, &str); 9] = [
    ("400", "The request is malformed"),
    ("401", "The token is missing or invalid"),
    (
        "403",
        "The token's role or the page's origin does not allow this",
    ),
    ("408", "The body did not arrive in time"),
    ("413", "The body is too large"),
    ("415", "The body is not declared as JSON"),
    ("429", "Too many requests; see Retry-After"),
    (
        "500",
        "Stored data is damaged, or an internal error occurred",
    ),
    (
        "503",
        "The store is unavailable, or the request timed out; see Retry-After",
    ),
];

/// Adds the security scheme and common errors to every route.
pub(super) fn complete_document(mut document: OpenApi) -> OpenApi {
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", scheme);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
            &mut item.patch,
        ];
        for operation in operations.into_iter().flatten() {
            let open = matches!(path.as_str(), "/health" | "/ready");
            complete_operation(operation, path.contains('{'), open);
        }
    }
    document
}

fn complete_operation(operation: &mut Operation, named: bool, open: bool) {
    if !open {
        let token: Vec<String> = Vec::new();
        operation.security = Some(vec![SecurityRequirement::new("token", token)]);
    }
    let missing = named.then_some(("404", "Not found, or owned by another user"));
    let stale = [
        (
            "409",
            "Conflict with a concurrent change; `head` is the current head",
        ),
        ("422", "The request is valid but cannot be carried out"),
    ];
    for (status, what) in COMMON_PROBLEMS.into_iter().chain(missing).chain(stale) {
        let responses = &mut operation.responses.responses;
        responses.entry(status.to_owned()).or_insert_with(|| {
            let schema = Ref::from_schema_name("Problem");
            let content = Content::new(Some(schema));
            let response = ResponseBuilder::new()
                .description(what)
                .content("application/problem+json", content);
            RefOr::T(response.build())
        });
    }
}

/// Serves the document.
pub(crate) fn openapi_router(document: OpenApi) -> Router<App> {
    let document = std::sync::Arc::new(document);
    Router::new().route(
        "/api/openapi.json",
        get(async move || Json(OpenApi::clone(&document))),
    )
}
