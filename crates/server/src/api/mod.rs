//! The native REST API under `/api`, one file per resource, described by OpenAPI.

mod admin;
pub(crate) mod blobs;
mod context;
mod entries;
mod events;
mod export;
mod lineage;
mod memory;
pub(crate) mod meta;
mod notes;
mod openapi_document;
mod search;
mod sessions;
mod turns;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use throughline::{EntryId, Seq, SessionId};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use context::compact_session;
pub(crate) use openapi_document::openapi_router;
pub(crate) use search::log_index_rebuild;

use crate::{App, Problem};

/// Builds the routes under `/api` and their OpenAPI description.
pub(crate) fn router() -> (Router<App>, OpenApi) {
    let (router, document) = OpenApiRouter::with_openapi(openapi_document::base_document())
        .routes(routes!(meta::health))
        .routes(routes!(meta::ready))
        .routes(routes!(meta::metrics))
        .routes(routes!(meta::whoami))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::get, sessions::patch, sessions::delete))
        .routes(routes!(sessions::restore))
        .routes(routes!(sessions::resolve))
        .routes(routes!(entries::page, entries::append))
        .routes(routes!(entries::get))
        .routes(routes!(notes::pin))
        .routes(routes!(notes::unpin))
        .routes(routes!(notes::decide))
        .routes(routes!(notes::erase))
        .routes(routes!(context::checkpoint, context::undo))
        .routes(routes!(context::working_set))
        .routes(routes!(context::request))
        .routes(routes!(context::preview))
        .routes(routes!(context::compact))
        .routes(routes!(context::clear))
        .routes(routes!(context::rewind))
        .routes(routes!(
            context::document,
            context::set_document,
            context::remove_document
        ))
        .routes(routes!(lineage::fork))
        .routes(routes!(lineage::merge))
        .routes(routes!(lineage::lineage))
        .routes(routes!(lineage::go_on))
        .routes(routes!(export::export))
        .routes(routes!(search::search))
        .routes(routes!(search::stats))
        .routes(routes!(search::projects))
        .routes(routes!(memory::list, memory::add))
        .routes(routes!(memory::edit, memory::forget))
        .routes(routes!(memory::accept))
        .routes(routes!(blobs::put))
        .routes(routes!(blobs::get))
        .routes(routes!(admin::tokens, admin::make))
        .routes(routes!(admin::revoke))
        .routes(routes!(admin::users))
        .routes(routes!(meta::voices))
        .routes(routes!(turns::begin))
        .routes(routes!(turns::current))
        .routes(routes!(turns::join, turns::stop))
        .routes(routes!(events::of_owner))
        .routes(routes!(events::of_session))
        .routes(routes!(events::socket))
        .split_for_parts();
    (router, openapi_document::complete_document(document))
}

/// Returns the OpenAPI document of everything under `/api`.
pub fn openapi() -> OpenApi {
    router().1
}

/// Derives an entry id from an `Idempotency-Key`: the same key gives the same id.
pub(crate) fn idempotent_entry_id(session: &SessionId, key: &str, index: usize) -> EntryId {
    EntryId::derive(&[
        b"idempotency",
        session.as_str().as_bytes(),
        key.as_bytes(),
        &(index as u64).to_le_bytes(),
    ])
}

/// The problem for an `Idempotency-Key` that was used with different content.
pub(crate) fn key_reused() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "idempotency_key_reused",
        "this Idempotency-Key was already used with different content",
    )
}

/// Returns the session's head as an `ETag` header.
pub(crate) fn etag(head: Seq) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&format!("\"{head}\"")) {
        headers.insert(header::ETAG, value);
    }
    headers
}

/// Validates the requested page size.
pub(crate) fn page_limit(app: &App, asked: Option<usize>, usual: usize) -> Result<usize, Problem> {
    let most = app.limits().page_items;
    match asked {
        None => Ok(usual.min(most)),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => Err(Problem::bad_request(
            "bad_limit",
            format!("limit must be 1 to {most}, not {limit}"),
        )),
    }
}
