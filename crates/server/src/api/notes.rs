//! Endpoints that pin a text, record a decision, or erase the content of entries.

use axum::Json as JsonResponse;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use throughline::Seq;
use utoipa::ToSchema;

use crate::Problem;
use crate::extract::{CallerSession, Json, PathSeq};
use crate::guard::empty_response;
use crate::wire::EntryView;

/// A note.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteBody {
    /// The text.
    text: String,
}

impl NoteBody {
    fn text(&self) -> Result<&str, Problem> {
        match self.text.trim() {
            "" => Err(Problem::invalid("`text` is empty")),
            text => Ok(text),
        }
    }
}

/// Pin a fact, so that it is part of every request
#[utoipa::path(post, path = "/api/sessions/{id}/pins", tag = "entries", request_body = NoteBody,
    params(CallerSession),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn pin(
    opened: CallerSession,
    Json(body): Json<NoteBody>,
) -> Result<JsonResponse<EntryView>, Problem> {
    let entry = opened.session.pin(body.text()?).await?;
    Ok(JsonResponse(EntryView(entry)))
}

/// Remove a pin
#[utoipa::path(delete, path = "/api/sessions/{id}/pins/{seq}", tag = "entries",
    params(CallerSession,
        ("seq" = u64, Path, description = "The entry that pinned it")),
    responses((status = 204, description = "Success")))]
pub(crate) async fn unpin(
    opened: CallerSession,
    PathSeq(seq): PathSeq,
) -> Result<Response, Problem> {
    opened.session.unpin(&seq.to_string()).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}

/// Record a decision
#[utoipa::path(post, path = "/api/sessions/{id}/decisions", tag = "entries",
    request_body = NoteBody, params(CallerSession),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn decide(
    opened: CallerSession,
    Json(body): Json<NoteBody>,
) -> Result<JsonResponse<EntryView>, Problem> {
    let entry = opened.session.decide(body.text()?).await?;
    Ok(JsonResponse(EntryView(entry)))
}

/// Entries to erase.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EraseBody {
    /// The entries whose content is erased.
    #[schema(value_type = Vec<u64>)]
    entries: Vec<Seq>,
    /// The reason.
    reason: Option<String>,
}

/// Erase the content of entries permanently, in forks too
#[utoipa::path(post, path = "/api/sessions/{id}/erase", tag = "entries",
    request_body = EraseBody, params(CallerSession),
    responses((status = 204, description = "Success")))]
pub(crate) async fn erase(
    opened: CallerSession,
    Json(body): Json<EraseBody>,
) -> Result<Response, Problem> {
    if body.entries.is_empty() {
        return Err(Problem::invalid("`entries` is empty"));
    }
    let reason = body.reason.as_deref();
    opened.session.erase(&body.entries, reason).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}
