//! What describes the API: the parts that are the same for every route.

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
        description = "Sessions that last, for AI agents.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    components(schemas(Problem)),
    tags(
        (name = "sessions", description = "Conversations, each an append-only log"),
        (name = "entries", description = "What happened in a session"),
        (name = "turns", description = "Asking, and the answer as it comes"),
        (name = "context", description = "What the model is sent"),
        (name = "lineage", description = "Forks, merges, continuations"),
        (name = "memory", description = "Facts that outlive sessions"),
        (name = "events", description = "What happens, as it happens"),
        (name = "admin", description = "Tokens and users"),
        (name = "server", description = "The server itself")
    )
)]
struct ApiDocument;

/// The document before any route is in it.
pub(super) fn base_document() -> OpenApi {
    ApiDocument::openapi()
}

/// What any route may answer besides what it is for.
const COMMON_PROBLEMS: [(&str, &str); 9] = [
    ("400", "What was sent makes no sense"),
    ("401", "No token, or one that does not count"),
    ("403", "Not with this token, or not from this page"),
    ("408", "The body did not arrive in time"),
    ("413", "Too much was sent"),
    ("415", "What was sent is not JSON, or does not say so"),
    ("429", "Too many requests; see Retry-After"),
    (
        "500",
        "What is stored cannot be trusted, or a fault of the server's",
    ),
    (
        "503",
        "The store cannot serve now, or it took too long; nothing was changed or see Retry-After",
    ),
];

/// The document with what is the same for every route.
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
    let missing = named.then_some(("404", "No such thing, or somebody else's"));
    let stale = [
        (
            "409",
            "Somebody else got there first; `head` is where it is now",
        ),
        ("422", "Understood, and cannot be done"),
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
