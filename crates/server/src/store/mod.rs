//! The store protocol, for clients without a local store: `tl` with a server's address.
//!
//! One path per call, as `throughline_remote::wire` defines them. Every call acts on behalf of the
//! authenticated caller, whatever it claims; a call that names another owner is answered with "not
//! found".

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

/// Builds the routes of the store protocol.
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

/// A call that this server handles.
#[async_trait]
trait CallHandler: Call {
    /// Handles the call.
    async fn handle(self, ctx: &CallContext) -> Result<Self::Answer, StoreError>;

    /// JSON that the call carries as text and that is stored verbatim.
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        std::iter::empty()
    }
}

/// The caller and the app state, for handling a call.
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

    /// Limits the number of items in a page.
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
            let problem =
                Problem::not_found("owner_not_found", "the token does not belong to that owner");
            return Err(problem.into_response());
        }
        Ok(Self {
            app: app.clone(),
            caller,
        })
    }
}

/// Adds the route of a call.
fn route_call<C: CallHandler>(router: Router<App>) -> Router<App> {
    router.route(&wire::call_path::<C>(), post(handle_call::<C>))
}

async fn handle_call<C: CallHandler>(ctx: CallContext, request: Request) -> Response {
    let call: C = match read_call(&ctx, request).await {
        Ok(call) => call,
        Err(problem) => return problem.into_response(),
    };
    let answer = call.handle(&ctx).await;
    store_response(answer.map(|answer| axum::Json(answer).into_response()))
}

async fn read_call<C: CallHandler>(ctx: &CallContext, request: Request) -> Result<C, Problem> {
    let bytes = read_body(request, &ctx.app, max_body_bytes(&ctx.app)).await?;
    let call: C = parse_json(&bytes)?;
    for payload in call.payloads() {
        check_depth(payload.as_bytes(), MAX_PAYLOAD_DEPTH)?;
    }
    Ok(call)
}

/// Maximum body size of a call, which may be an attachment or entries as large.
fn max_body_bytes(app: &App) -> usize {
    app.limits().body_bytes.max(app.limits().blob_bytes)
}

/// Converts a store result into a response; an error is marked as the store's.
fn store_response(answer: Result<Response, StoreError>) -> Response {
    let mut response = answer.unwrap_or_else(|error| {
        let failure = StoreFailure::from(&error);
        // Conversion to a problem determines the status and logs the error.
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

/// Returns the supported protocol versions; no token required.
async fn protocol_versions() -> Response {
    axum::Json(SupportedVersions {
        throughline: env!("CARGO_PKG_VERSION").to_owned(),
        store: vec![VERSION],
    })
    .into_response()
}

#[async_trait]
impl CallHandler for Hello {
    async fn handle(self, ctx: &CallContext) -> Result<CallerInfo, StoreError> {
        // The first change never changes, so it identifies the store. Hashed, so that it reveals
        // nothing else.
        let first = ctx.store().changes(Position(0), 1).await?;
        let identity = first.first().map(|change| {
            let (owner, session) = (change.owner.as_str(), &change.session);
            let which = format!("{} {owner} {session}", change.position);
            Digest::of(which.as_bytes()).to_string()
        });
        Ok(CallerInfo {
            owner: ctx.owner().clone(),
            role: ctx.caller.role,
            identity,
            largest: max_body_bytes(&ctx.app) as u64,
        })
    }
}
