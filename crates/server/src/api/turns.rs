//! Turns API: ask a question and stream the answer.

use axum::Json as JsonResponse;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline::{Content, SessionId};
use utoipa::ToSchema;

use super::entries::OnConflictBody;
use crate::extract::{CallerSession, IdempotencyKey, IfMatch, OptionalJson, path_param};
use crate::guard::empty_response;
use crate::turns::{
    TurnId, TurnOptions, TurnReport, TurnRequest, TurnStream, WhenBusy, follow_remote_turn,
};
use crate::wire::{EntryView, StreamedEvent, UsageView};
use crate::{App, Problem, ResponderChoice};

/// A question.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnBody {
    /// The user's message: text or blocks. If omitted, the last message is answered.
    #[schema(value_type = Option<serde_json::Value>, example = "How do we store sessions?")]
    message: Option<Content>,
    /// Who wrote it, if there are several people.
    author: Option<String>,
    /// The model for this turn, one of `GET /api/voices`. Defaults to the agent's or the server's
    /// default.
    model: Option<String>,
    /// The agent for this turn, one of `GET /api/voices`. Defaults to the session's or the server's
    /// default.
    agent: Option<String>,
    /// What to do if another turn is running in the session.
    #[serde(default)]
    when_busy: WhenBusy,
    /// What to do if `If-Match` is no longer the head.
    #[serde(default)]
    on_conflict: OnConflictBody,
    /// Whether to stream the answer as server-sent events. Otherwise one JSON document is returned
    /// at the end.
    #[serde(default = "yes")]
    stream: bool,
}

fn yes() -> bool {
    true
}

/// Result of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnView {
    /// The turn's id.
    #[schema(value_type = String, format = "uuid")]
    turn: TurnId,
    /// The session the turn ran in.
    #[schema(value_type = String)]
    session: SessionId,
    /// The question, as stored.
    question: EntryView,
    /// The answer, as stored; absent if there is none.
    answer: Option<EntryView>,
    /// Token usage, as reported by the provider.
    usage: Option<UsageView>,
    /// Tokens in the request, as counted by the server.
    request_tokens: Option<u64>,
    /// Whether the turn was stopped.
    stopped: bool,
    /// Whether the answer reached its maximum length and was cut off.
    cut: bool,
    /// Why there is no answer, or an incomplete one.
    failed: Option<Problem>,
}

impl From<TurnReport> for TurnView {
    fn from(outcome: TurnReport) -> Self {
        Self {
            turn: outcome.turn,
            session: outcome.session,
            question: EntryView(outcome.question),
            answer: outcome.answer.map(EntryView),
            usage: outcome.usage.map(UsageView::from),
            request_tokens: outcome.request_tokens,
            stopped: outcome.stopped,
            cut: outcome.cut,
            failed: outcome.failed,
        }
    }
}

/// Ask a question and stream the answer
///
/// The message is stored before the model is called. The answer is stored when it ends, even if the
/// client disconnects. Events: `turn:queued`, `turn:started`, `turn:sent`, `message:started` (with
/// the id of the answer's entry), `message:delta`, `message:thinking`, `message:tool_call`,
/// `message:tool_result`, `session:compaction-start`, `-complete` and `-error`, `turn:warning`,
/// `turn:retrying`, and at the end `turn:complete`, `turn:stopped` or `turn:failed`.
#[utoipa::path(post, path = "/api/sessions/{id}/turns", tag = "turns", request_body = TurnBody,
    params(CallerSession,
        IfMatch,
        IdempotencyKey),
    responses((status = 200, description = "The turn's events, or its result at the end",
        content((TurnView = "application/json"), (StreamedEvent = "text/event-stream")))))]
pub(crate) async fn begin(
    State(app): State<App>,
    opened: CallerSession,
    IfMatch(expect): IfMatch,
    IdempotencyKey(key): IdempotencyKey,
    OptionalJson(body): OptionalJson<TurnBody>,
) -> Result<Response, Problem> {
    let question = TurnRequest {
        content: body.message,
        author: body.author,
        expect,
        conflict: body.on_conflict.into(),
        key,
        when_busy: body.when_busy,
        options: TurnOptions {
            choice: ResponderChoice {
                model: body.model,
                agent: body.agent,
            },
            ..TurnOptions::default()
        },
    };
    let live = crate::turns::start_turn(&app, &opened.caller, &opened.session, question).await?;
    if body.stream {
        return Ok(live.sse_response(0));
    }
    live.wait().await;
    outcome_response(&live)
}

fn outcome_response(live: &TurnStream) -> Result<Response, Problem> {
    match live.outcome() {
        Some(Ok(outcome)) => Ok(JsonResponse(TurnView::from(outcome.clone())).into_response()),
        Some(Err(problem)) => Err(problem.clone()),
        None => Err(turn_not_found()),
    }
}

fn turn_not_found() -> Problem {
    Problem::not_found(
        "turn_not_found",
        "no such turn; finished turns are removed after a while, their messages are in the entries",
    )
}

/// Number of events the client has already received, by `Last-Event-ID`.
fn seen_events(headers: &HeaderMap) -> Result<usize, Problem> {
    let position = crate::events::parse_last_event_id(headers)?;
    Ok(position.map_or(0, |position| {
        usize::try_from(position.0).unwrap_or(usize::MAX)
    }))
}

/// Stream the running turn, or the last one, from its start
///
/// `Last-Event-ID` resumes after that event. If another server on the same store runs the turn, the
/// stream has `turn:elsewhere`, and `turn:complete` once the answer is stored.
#[utoipa::path(get, path = "/api/sessions/{id}/turns/current", tag = "turns",
    params(CallerSession,
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event received")),
    responses((status = 200, body = StreamedEvent, content_type = "text/event-stream")))]
pub(crate) async fn current(
    State(app): State<App>,
    opened: CallerSession,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let seen = seen_events(&headers)?;
    if let Some(live) = app.turns.find(opened.session.reference(), None) {
        return Ok(live.sse_response(seen));
    }
    let elsewhere = follow_remote_turn(&app, &opened.caller.tl, &opened.session, seen);
    elsewhere.await?.ok_or_else(turn_not_found)
}

/// The turn id in the path.
pub(crate) struct PathTurnId(TurnId);

impl FromRequestParts<App> for PathTurnId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = path_param(parts, app, "turn").await?;
        text.parse().map(Self).map_err(|_| turn_not_found())
    }
}

/// Stream a turn from its start
///
/// `Last-Event-ID` resumes after that event.
#[utoipa::path(get, path = "/api/sessions/{id}/turns/{turn}", tag = "turns",
    params(CallerSession,
        ("turn" = String, Path, description = "Turn id"),
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event received")),
    responses((status = 200, body = StreamedEvent, content_type = "text/event-stream")))]
pub(crate) async fn join(
    State(app): State<App>,
    opened: CallerSession,
    PathTurnId(turn): PathTurnId,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = app.turns.find(opened.session.reference(), Some(&turn));
    Ok(found
        .ok_or_else(turn_not_found)?
        .sse_response(seen_events(&headers)?))
}

/// Stop a turn; the partial answer is stored
#[utoipa::path(delete, path = "/api/sessions/{id}/turns/{turn}", tag = "turns",
    params(CallerSession,
        ("turn" = String, Path, description = "Turn id")),
    responses((status = 202, description = "The turn is being stopped")))]
pub(crate) async fn stop(
    State(app): State<App>,
    opened: CallerSession,
    PathTurnId(turn): PathTurnId,
) -> Result<Response, Problem> {
    let found = app.turns.find(opened.session.reference(), Some(&turn));
    found.ok_or_else(turn_not_found)?.stop();
    Ok(empty_response(StatusCode::ACCEPTED))
}
