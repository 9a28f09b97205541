//! Extractors for pages: the visitor, the session they opened, and submitted forms.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::de::DeserializeOwned;
use throughline::{Record, Session};

use super::layout;
use super::page_format::percent_encode;
use crate::extract::PathSessionId;
use crate::request_body::read_body;
use crate::{App, Caller, Problem};

/// An error shown as a page.
#[derive(Debug)]
pub(super) struct PageError(pub(super) Problem);

impl<E: Into<Problem>> From<E> for PageError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        layout::error_page(&self.0)
    }
}

/// A visitor of a page.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) app: App,
    pub(super) caller: Caller,
}

impl FromRequestParts<App> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let here = parts
            .uri
            .path_and_query()
            .map_or_else(|| "/".to_owned(), ToString::to_string);
        match Caller::from_request_parts(parts, app).await {
            Ok(caller) => Ok(Self {
                app: app.clone(),
                caller,
            }),
            // A fragment is fetched by a script, which handles errors itself.
            Err(problem) if here.contains("part=") => {
                Err((problem.status, problem.detail).into_response())
            }
            Err(problem) if problem.status == StatusCode::UNAUTHORIZED => {
                let next = if parts.method.is_safe() { &here } else { "/" };
                let login = format!("/login?next={}", percent_encode(next));
                Err(Redirect::to(&login).into_response())
            }
            Err(problem) => Err(PageError(problem).into_response()),
        }
    }
}

impl Visitor {
    /// Whether the visitor logged in with a token and can log out.
    pub(super) fn is_logged_in(&self) -> bool {
        self.caller.by_cookie
    }

    pub(super) fn is_admin(&self) -> bool {
        self.caller.require_admin().is_ok()
    }
}

/// A session opened by a visitor.
#[derive(Clone, Debug)]
pub(super) struct VisitorSession {
    pub(super) visitor: Visitor,
    pub(super) session: Session,
    pub(super) record: Record,
}

impl FromRequestParts<App> for VisitorSession {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let visitor = Visitor::from_request_parts(parts, app).await?;
        let found = async {
            let PathSessionId(id) = PathSessionId::from_request_parts(parts, app).await?;
            let session = visitor.caller.tl.session_unchecked(&id);
            let record = session.record().await?;
            Ok::<_, PageError>((session, record))
        };
        match found.await {
            Ok((session, record)) => Ok(Self {
                visitor,
                session,
                record,
            }),
            Err(fault) => Err(fault.into_response()),
        }
    }
}

/// A submitted form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for Form<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        read_form(request, app, app.limits().body_bytes)
            .await
            .map(Self)
    }
}

/// Reads a form of at most this many bytes.
pub(super) async fn read_form<T: DeserializeOwned>(
    request: Request,
    app: &App,
    most: usize,
) -> Result<T, Response> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/x-www-form-urlencoded") {
        let problem = Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_a_form",
            "this endpoint accepts forms of the web page; programs use /api",
        );
        return Err(PageError(problem).into_response());
    }
    let bytes = read_body(request, app, most).await;
    let bytes = bytes.map_err(|problem| PageError(problem).into_response())?;
    serde_urlencoded::from_bytes(&bytes).map_err(|error| {
        let problem = Problem::bad_request("bad_form", format!("the form is invalid: {error}"));
        PageError(problem).into_response()
    })
}
