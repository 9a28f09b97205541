//! Axum extractors with clear errors: JSON bodies, queries, path parameters and headers.

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use throughline::{Expect, MAX_JSON_DEPTH, Seq, Session, SessionId, is_nested_deeper_than};

use crate::request_body::read_body;
use crate::{App, Caller, Problem};

/// A JSON body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        require_json(request.headers())?;
        let bytes = read_body(request, app, app.limits().body_bytes).await?;
        parse_json(&bytes).map(Self)
    }
}

/// An optional JSON body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let json = require_json(request.headers());
        let bytes = read_body(request, app, app.limits().body_bytes).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        json?;
        parse_json(&bytes).map(Self)
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") || kind.ends_with("+json") {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not_json",
        "send JSON with `Content-Type: application/json`",
    ))
}

/// Rejects JSON that is nested too deeply. Stored JSON must be readable by every parser later.
pub(crate) fn check_nesting(json: &[u8]) -> Result<(), Problem> {
    check_depth(json, MAX_JSON_DEPTH)
}

/// Same as [`check_nesting`], for another depth.
pub(crate) fn check_depth(json: &[u8], levels: usize) -> Result<(), Problem> {
    if is_nested_deeper_than(json, levels) {
        return Err(too_deep());
    }
    Ok(())
}

fn too_deep() -> Problem {
    Problem::bad_request(
        "json_too_deep",
        format!(
            "JSON is nested too deeply: at most {MAX_JSON_DEPTH} levels, or 128 if it is not stored"
        ),
    )
}

/// Parses JSON: malformed JSON is a bad request, JSON of the wrong shape is unprocessable.
pub(crate) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    check_nesting(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| {
        use serde_json::error::Category;
        if error.to_string().starts_with("recursion limit exceeded") {
            return too_deep();
        }
        match error.classify() {
            Category::Data => Problem::invalid(format!("the body is invalid: {error}")),
            Category::Io | Category::Syntax | Category::Eof => {
                Problem::bad_request("bad_json", format!("the body is not JSON: {error}"))
            }
        }
    })
}

/// The query string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|error| {
                let why = error.body_text();
                let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
                let detail = format!("the query is invalid: {why}");
                Problem::bad_request("bad_query_string", detail)
            })
    }
}

/// Returns a path parameter by its name in the route.
pub(crate) async fn path_param(
    parts: &mut Parts,
    app: &App,
    name: &str,
) -> Result<String, Problem> {
    let params = RawPathParams::from_request_parts(parts, app)
        .await
        .map_err(|error| Problem::bad_request("bad_path", error.body_text()))?;
    let found = params.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, value)| value.to_owned())
        .ok_or_else(|| Problem::not_found("no_such_path", format!("the path has no {name}")))
}

/// The session id in the path; the session need not exist.
#[derive(Clone, Debug)]
pub(crate) struct PathSessionId(pub(crate) SessionId);

impl FromRequestParts<App> for PathSessionId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = path_param(parts, app, "id").await?;
        // A string that cannot be an id does not name any session.
        text.parse().map(Self).map_err(|error| {
            Problem::not_found("session_not_found", format!("no such session: {error}"))
        })
    }
}

/// The session in the path, which exists and belongs to the caller.
#[derive(Clone, Debug)]
pub(crate) struct CallerSession {
    pub(crate) caller: Caller,
    pub(crate) session: Session,
}

impl FromRequestParts<App> for CallerSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let PathSessionId(id) = PathSessionId::from_request_parts(parts, app).await?;
        let session = caller.tl.session(&id).await?;
        Ok(Self { caller, session })
    }
}

/// The entry number in the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathSeq(pub(crate) Seq);

impl FromRequestParts<App> for PathSeq {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = path_param(parts, app, "seq").await?;
        text.parse().map(Self).map_err(|_| {
            Problem::not_found(
                "entry_not_found",
                format!("{text:?} is not an entry number"),
            )
        })
    }
}

/// The head the caller expects: `If-Match: "12"`, or `*` for any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IfMatch(pub(crate) Expect);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Ok(Self(Expect::Any));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(Expect::Any));
        }
        let number = text.trim_matches('"').parse();
        number.map(|seq| Self(Expect::At(seq))).map_err(|_| {
            Problem::bad_request(
                "bad_if_match",
                "If-Match must be the number of the last entry, as in the ETag: \"12\"",
            )
        })
    }
}

/// The `Idempotency-Key` header, which makes a retried request take effect once.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        const LONGEST: usize = 255;
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(Self(None));
        };
        match value.to_str() {
            Ok(key) if !key.trim().is_empty() && key.len() <= LONGEST => {
                Ok(Self(Some(key.to_owned())))
            }
            _ => Err(Problem::bad_request(
                "bad_idempotency_key",
                format!("an Idempotency-Key must have 1 to {LONGEST} printable ASCII characters"),
            )),
        }
    }
}
