//! What is noted in a session: pins, decisions, and what must go for good.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use throughline::Seq;
use utoipa::ToSchema;

use crate::Problem;
use crate::extract::{CallerSession, Json, PathSeq};
use crate::guard::empty_response;
use crate::wire::EntryView;

/// Something to note.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteBody {
    /// What.
    text: String,
}

impl NoteBody {
    fn text(&self) -> Result<&str, Problem> {
        match self.text.trim() {
            "" => Err(Problem::invalid("there is nothing in `text`")),
            text => Ok(text),
        }
    }
}

/// Keep a fact always in view
#[utoipa::path(post, path = "/api/sessions/{id}/pins", tag = "entries", request_body = NoteBody,
    params(CallerSession),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn pin(
    opened: CallerSession,
    Json(body): Json<NoteBody>,
) -> Result<Answer<EntryView>, Problem> {
    let entry = opened.session.pin(body.text()?).await?;
    Ok(Answer(EntryView(entry)))
}

/// Take a pin back
#[utoipa::path(delete, path = "/api/sessions/{id}/pins/{seq}", tag = "entries",
    params(CallerSession,
        ("seq" = u64, Path, description = "The entry that pinned it")),
    responses((status = 204, description = "Done")))]
pub(crate) async fn unpin(
    opened: CallerSession,
    PathSeq(seq): PathSeq,
) -> Result<Response, Problem> {
    opened.session.unpin(&seq.to_string()).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}

/// Note a decision
#[utoipa::path(post, path = "/api/sessions/{id}/decisions", tag = "entries",
    request_body = NoteBody, params(CallerSession),
    responses((status = 200, body = EntryView)))]
pub(crate) async fn decide(
    opened: CallerSession,
    Json(body): Json<NoteBody>,
) -> Result<Answer<EntryView>, Problem> {
    let entry = opened.session.decide(body.text()?).await?;
    Ok(Answer(EntryView(entry)))
}

/// What must go.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EraseBody {
    /// The entries whose content is replaced.
    #[schema(value_type = Vec<u64>)]
    entries: Vec<Seq>,
    /// Why.
    reason: Option<String>,
}

/// Replace the content of entries for good, in forks too
#[utoipa::path(post, path = "/api/sessions/{id}/erase", tag = "entries",
    request_body = EraseBody, params(CallerSession),
    responses((status = 204, description = "Done")))]
pub(crate) async fn erase(
    opened: CallerSession,
    Json(body): Json<EraseBody>,
) -> Result<Response, Problem> {
    if body.entries.is_empty() {
        return Err(Problem::invalid("`entries` names none"));
    }
    let reason = body.reason.as_deref();
    opened.session.erase(&body.entries, reason).await?;
    Ok(empty_response(StatusCode::NO_CONTENT))
}
