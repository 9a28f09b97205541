//! The store itself, for clients that keep none of their own: `tl` with a server's address.
//!
//! A path a call, as `throughline_remote::wire` describes them. Every call is made on behalf
//! of the caller, whatever it says; one that believes to be another's is not found.

mod blobs;
mod catalog;
mod feed;
mod leases;
mod log;
mod tokens;

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
    self, BLOBS_PATH, Call, Failure, Hello, OWNER_HEADER, SPOKEN_PATH, Spoken, VERSION,
    VERSION_HEADER, Welcome,
};

use crate::body::body;
use crate::extract::{check_depth, parsed};
use crate::{App, Caller, Problem};

/// The paths of the store.
pub(crate) fn router() -> Router<App> {
    let router = Router::new()
        .route(SPOKEN_PATH, get(spoken))
        .route(BLOBS_PATH, post(blobs::put))
        .route(&format!("{BLOBS_PATH}/{{blob}}"), get(blobs::get));
    let router = on::<Hello>(router);
    let router = log::routes(catalog::routes(router));
    let router = tokens::routes(leases::routes(router));
    feed::routes(router)
}

/// A call that this server answers.
#[async_trait]
trait Answered: Call {
    /// The answer.
    async fn answer(self, asker: &Asker) -> Result<Self::Answer, StoreError>;

    /// JSON that the call carries as text, and that is stored as it is.
    fn payloads(&self) -> impl Iterator<Item = &str> + Send {
        std::iter::empty()
    }
}

/// Whoever asks, and what they ask in.
struct Asker {
    app: App,
    caller: Caller,
}

impl Asker {
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
    fn page(&self, asked: usize) -> usize {
        asked.min(self.app.limits().page)
    }
}

impl FromRequestParts<App> for Asker {
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
fn on<C: Answered>(router: Router<App>) -> Router<App> {
    router.route(&wire::path::<C>(), post(answered::<C>))
}

async fn answered<C: Answered>(asker: Asker, request: Request) -> Response {
    let call: C = match read(&asker, request).await {
        Ok(call) => call,
        Err(problem) => return problem.into_response(),
    };
    let answer = call.answer(&asker).await;
    said(answer.map(|answer| axum::Json(answer).into_response()))
}

async fn read<C: Answered>(asker: &Asker, request: Request) -> Result<C, Problem> {
    let bytes = body(request, &asker.app, largest(&asker.app)).await?;
    let call: C = parsed(&bytes)?;
    for payload in call.payloads() {
        check_depth(payload.as_bytes(), MAX_PAYLOAD_DEPTH)?;
    }
    Ok(call)
}

/// The largest body of a call: what is sent may be an attachment, or entries as large.
fn largest(app: &App) -> usize {
    app.limits().body.max(app.limits().blob)
}

/// An answer, or what went wrong in the store, marked as the store's.
fn said(answer: Result<Response, StoreError>) -> Response {
    let mut response = answer.unwrap_or_else(|error| {
        let failure = Failure::from(&error);
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
async fn spoken() -> Response {
    axum::Json(Spoken {
        throughline: env!("CARGO_PKG_VERSION").to_owned(),
        store: vec![VERSION],
    })
    .into_response()
}

#[async_trait]
impl Answered for Hello {
    async fn answer(self, asker: &Asker) -> Result<Welcome, StoreError> {
        // The first thing that ever happened stays the first. Hashed, it tells nothing else.
        let first = asker.store().changes(Position(0), 1).await?;
        let identity = first.first().map(|change| {
            let (owner, session) = (change.owner.as_str(), &change.session);
            let which = format!("{} {owner} {session}", change.position);
            Digest::of(which.as_bytes()).to_string()
        });
        Ok(Welcome {
            owner: asker.owner().clone(),
            role: asker.caller.role,
            identity,
            largest: largest(&asker.app) as u64,
        })
    }
}
