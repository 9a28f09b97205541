//! The store itself, for clients that keep none of their own: `tl` with a server's address.
//!
//! A path a call, as `throughline_remote::wire` describes them. Every call is made on behalf
//! of the caller, whatever it says; one that believes to be another's is not found.

mod blobs;
mod catalog;
mod feed;
mod leases;
mod log;
mod token_counts;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use throughline::{
    Digest, MAX_PAYLOAD_DEPTH, Owner, Position, SessionId, SessionRef, Store, StoreError,
};
use throughline_remote::wire::{
    self, BLOBS_PATH, Call, CallerInfo, Hello, OWNER_HEADER, StoreFailure, SupportedVersions,
    VERSION, VERSION_HEADER, VERSIONS_PATH,
};

use crate::extract::{check_depth, parse_json};
use crate::request_body::read_body;
use crate::{App, Caller, Problem};

/// The paths of the store.
pub(crate) fn router() -> Router<App> {
    let router = Router::new()
        .route(VERSIONS_PATH, get(protocol_versions))
        .route(BLOBS_PATH, post(blobs::put))
        .route(&format!("{BLOBS_PATH}/{{blob}}"), get(blobs::get));
    let router = route_call::<Hello>(router);
    let router = log::add_routes(catalog::add_routes(router));
    let router = token_counts::add_routes(leases::add_routes(router));
    feed::add_routes(router)
}

/// A call that this server answers.
#[async_trait]
trait CallHandler: Call {
    /// The answer.
    async fn handle(self, asker: &CallContext) -> Result<Self::Answer, StoreError>;

    /// JSON that the call carries as text, and that is stored as it is.
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        std::iter::empty()
    }
}

/// Whoever asks, and what they ask in.
struct CallContext {
    app: App,
    caller: Caller,
}

impl CallContext {
    fn store(&self) -> &dyn Store {
        self.caller.tl.store()
    }

    fn owner(&self) -> &Owner {
        self.caller.owner()
    }

    fn session(&self, id: &SessionId) -> SessionRef {
        self.owner().session(id)
    }

    /// The most items of an answer that has a next one.
    fn page_limit(&self, asked: usize) -> usize {
        asked.min(self.app.limits().page_items)
    }
}

impl FromRequestParts<App> for CallContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let caller = Caller::from_request_parts(parts, app)
            .await
            .map_err(IntoResponse::into_response)?;
        let believed = parts.headers.get(OWNER_HEADER);
        if believed.is_some_and(|owner| owner.as_bytes() != caller.owner().as_str().as_bytes()) {
            let problem = Problem::not_found(
                "owner_not_found",
                "the token is not that owner's; nothing of theirs is here for it",
            );
            return Err(problem.into_response());
        }
        Ok(Self {
            app: app.clone(),
            caller,
        })
    }
}

/// Answers a call at its path.
fn route_call<C: CallHandler>(router: Router<App>) -> Router<App> {
    router.route(&wire::call_path::<C>(), post(handle_call::<C>))
}

async fn handle_call<C: CallHandler>(asker: CallContext, request: Request) -> Response {
    let call: C = match read_call(&asker, request).await {
        Ok(call) => call,
        Err(problem) => return problem.into_response(),
    };
    let answer = call.handle(&asker).await;
    store_response(answer.map(|answer| axum::Json(answer).into_response()))
}

async fn read_call<C: CallHandler>(asker: &CallContext, request: Request) -> Result<C, Problem> {
    let bytes = read_body(request, &asker.app, max_body_bytes(&asker.app)).await?;
    let call: C = parse_json(&bytes)?;
    for payload in call.payloads() {
        check_depth(payload.as_bytes(), MAX_PAYLOAD_DEPTH)?;
    }
    Ok(call)
}

/// The largest body of a call: what is sent may be an attachment, or entries as large.
fn max_body_bytes(app: &App) -> usize {
    app.limits().body_bytes.max(app.limits().blob_bytes)
}

/// An answer, or what went wrong in the store, marked as the store's.
fn store_response(answer: Result<Response, StoreError>) -> Response {
    let mut response = answer.unwrap_or_else(|error| {
        let failure = StoreFailure::from(&error);
        // The one place where errors become statuses, and are noted.
        let problem = Problem::from(error);
        let mut response = (problem.status, axum::Json(failure)).into_response();
        if let Some(seconds) = problem.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    });
    let headers = response.headers_mut();
    headers.insert(VERSION_HEADER, HeaderValue::from(VERSION));
    response
}

/// Which versions are spoken here, for anybody.
async fn protocol_versions() -> Response {
    axum::Json(SupportedVersions {
        throughline: env!("CARGO_PKG_VERSION").to_owned(),
        store: vec![VERSION],
    })
    .into_response()
}

#[async_trait]
impl CallHandler for Hello {
    async fn handle(self, asker: &CallContext) -> Result<CallerInfo, StoreError> {
        // The first thing that ever happened stays the first. Hashed, it tells nothing else.
        let first = asker.store().changes(Position(0), 1).await?;
        let identity = first.first().map(|change| {
            let (owner, session) = (change.owner.as_str(), &change.session);
            let which = format!("{} {owner} {session}", change.position);
            Digest::of(which.as_bytes()).to_string()
        });
        Ok(CallerInfo {
            owner: asker.owner().clone(),
            role: asker.caller.role,
            identity,
            largest: max_body_bytes(&asker.app) as u64,
        })
    }
}
