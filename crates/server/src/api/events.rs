//! Event streams: every change in the caller's sessions, live.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use throughline::{Position, SessionId};
use utoipa::IntoParams;

use crate::events::{
    EventFilter, Subscription, parse_last_event_id, serve_websocket, subscription_response,
};
use crate::extract::{CallerSession, Query};
use crate::guard::StreamSlot;
use crate::wire::StreamedEvent;
use crate::{App, Caller, Problem};

/// Which events to receive.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only events of this session.
    session: Option<String>,
    /// Only events with one of these names or actions, separated by commas: `session:updated`,
    /// `message_added`, `message:delta`…
    kind: Option<String>,
    /// Resume after this event id, if `Last-Event-ID` cannot be sent; 0 replays everything.
    after: Option<u64>,
}

impl EventsQuery {
    fn into_filter(self, headers: &HeaderMap) -> Result<EventFilter, Problem> {
        let session: Option<SessionId> = self
            .session
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(|error: throughline::IdError| {
                Problem::not_found("session_not_found", format!("no such session: {error}"))
            })?;
        let kinds = self.kind.iter().flat_map(|kinds| kinds.split(','));
        Ok(EventFilter {
            session,
            kinds: kinds.map(|kind| kind.trim().to_owned()).collect(),
            after: parse_last_event_id(headers)?.or(self.after.map(Position)),
        })
    }
}

/// Subscribes to the events. A session that is named must belong to the caller.
async fn subscribe(
    app: &App,
    caller: &Caller,
    filter: EventFilter,
) -> Result<Subscription, Problem> {
    if let Some(session) = &filter.session {
        caller.tl.session(session).await?;
    }
    Subscription::start(app, &caller.tl, filter).await
}

/// Stream all events of the caller's sessions
///
/// An event's id is its position in the store: a client that resumes with `Last-Event-ID` misses
/// nothing. The first event is `ready`; `reset` means that the client was too far behind to resume.
#[utoipa::path(get, path = "/api/events", tag = "events", params(EventsQuery,
    ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event received")),
    responses((status = 200, body = StreamedEvent, content_type = "text/event-stream")))]
pub(crate) async fn of_owner(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let subscription = subscribe(&app, &caller, query.into_filter(&headers)?).await?;
    Ok(subscription_response(&app, subscription))
}

/// Stream the events of one session
#[utoipa::path(get, path = "/api/sessions/{id}/events", tag = "events", params(EventsQuery,
    CallerSession,
    ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event received")),
    responses((status = 200, body = StreamedEvent, content_type = "text/event-stream")))]
pub(crate) async fn of_session(
    State(app): State<App>,
    opened: CallerSession,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let filter = EventFilter {
        session: Some(opened.session.id().clone()),
        ..query.into_filter(&headers)?
    };
    let subscription = Subscription::start(&app, &opened.caller.tl, filter).await?;
    Ok(subscription_response(&app, subscription))
}

/// Stream all events over a WebSocket, one message per event: `{"id", "event", "data"}`
#[utoipa::path(get, path = "/api/events/ws", tag = "events", params(EventsQuery),
    responses((status = 101, description = "Events follow")))]
pub(crate) async fn socket(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
    Extension(slot): Extension<Arc<StreamSlot>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade =
        upgrade.map_err(|error| Problem::bad_request("not_a_websocket", error.body_text()))?;
    let subscription = subscribe(&app, &caller, query.into_filter(&headers)?).await?;
    Ok(upgrade.on_upgrade(move |socket| serve_websocket(app, subscription, socket, slot)))
}
