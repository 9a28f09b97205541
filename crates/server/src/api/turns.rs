//! Turns: asking, and the answer as it comes.

use axum::Json as Answer;
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

/// What to ask.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnBody {
    /// What the person says: a text, or blocks. Left out, the last message is answered.
    #[schema(value_type = Option<serde_json::Value>, example = "How do we store sessions?")]
    message: Option<Content>,
    /// Who says it, of several people.
    author: Option<String>,
    /// The model that is to answer this turn, of those in `GET /api/voices`; left out, the
    /// agent's or the usual one.
    model: Option<String>,
    /// The agent that is to answer this turn, of those in `GET /api/voices`; left out, the
    /// session's or the usual one.
    agent: Option<String>,
    /// What to do where an answer is under way in the session.
    #[serde(default)]
    when_busy: WhenBusy,
    /// What to do where `If-Match` is no longer the head.
    #[serde(default)]
    on_conflict: OnConflictBody,
    /// Whether the answer is told as it comes, as server-sent events; otherwise it is one
    /// JSON document at the end.
    #[serde(default = "yes")]
    stream: bool,
}

fn yes() -> bool {
    true
}

/// What became of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnView {
    /// The turn.
    #[schema(value_type = String, format = "uuid")]
    turn: TurnId,
    /// The session it went on in.
    #[schema(value_type = String)]
    session: SessionId,
    /// What was asked, as it was kept.
    question: EntryView,
    /// The answer, as it was kept; none where nothing came.
    answer: Option<EntryView>,
    /// What it cost, as the provider reported it.
    usage: Option<UsageView>,
    /// What the request had, in tokens as counted here.
    request_tokens: Option<u64>,
    /// Whether it was stopped.
    stopped: bool,
    /// Whether it grew longer than it may, and ends there.
    cut: bool,
    /// Why there is no answer, or no whole one.
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

/// Ask something, and hear the answer as it comes
///
/// The message is kept before the model is asked, and the answer when it ends, whether or
/// not anybody still listens. Events: `turn:queued`, `turn:started`, `turn:sent`,
/// `message:started` (with the id of the entry to be), `message:delta`, `message:thinking`, `message:tool_call`, `message:tool_result`,
/// `session:compaction-start`, `-complete` and `-error`, `turn:warning`, `turn:retrying`,
/// and at the end `turn:complete`, `turn:stopped` or `turn:failed`.
#[utoipa::path(post, path = "/api/sessions/{id}/turns", tag = "turns", request_body = TurnBody,
    params(CallerSession,
        IfMatch,
        IdempotencyKey),
    responses((status = 200, description = "What becomes of it, as it becomes so or at the end",
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
        Some(Ok(outcome)) => Ok(Answer(TurnView::from(outcome.clone())).into_response()),
        Some(Err(problem)) => Err(problem.clone()),
        None => Err(turn_not_found()),
    }
}

fn turn_not_found() -> Problem {
    Problem::not_found(
        "turn_not_found",
        "no such turn is known here any more; what was said and answered is in the entries",
    )
}

/// What somebody heard of a turn before.
fn seen_events(headers: &HeaderMap) -> Result<usize, Problem> {
    let position = crate::events::parse_last_event_id(headers)?;
    Ok(position.map_or(0, |position| {
        usize::try_from(position.0).unwrap_or(usize::MAX)
    }))
}

/// Listen to the turn under way, or to the last one, from its start
///
/// `Last-Event-ID` goes on after that event. Of a turn that another server over the same
/// store runs, `turn:elsewhere` is told, and `turn:complete` when its answer is kept.
#[utoipa::path(get, path = "/api/sessions/{id}/turns/current", tag = "turns",
    params(CallerSession,
        ("Last-Event-ID" = Option<String>, Header, description = "The last event heard")),
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

/// The id of a turn in the path.
pub(crate) struct PathTurnId(TurnId);

impl FromRequestParts<App> for PathTurnId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let text = path_param(parts, app, "turn").await?;
        text.parse().map(Self).map_err(|_| turn_not_found())
    }
}

/// Listen to a turn, from its start
///
/// `Last-Event-ID` goes on after that event.
#[utoipa::path(get, path = "/api/sessions/{id}/turns/{turn}", tag = "turns",
    params(CallerSession,
        ("turn" = String, Path, description = "The turn"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event heard")),
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

/// Stop a turn; what came of the answer is kept
#[utoipa::path(delete, path = "/api/sessions/{id}/turns/{turn}", tag = "turns",
    params(CallerSession,
        ("turn" = String, Path, description = "The turn")),
    responses((status = 202, description = "It will stop")))]
pub(crate) async fn stop(
    State(app): State<App>,
    opened: CallerSession,
    PathTurnId(turn): PathTurnId,
) -> Result<Response, Problem> {
    let found = app.turns.find(opened.session.reference(), Some(&turn));
    found.ok_or_else(turn_not_found)?.stop();
    Ok(empty_response(StatusCode::ACCEPTED))
}
