//! Server-sent event streams.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use throughline::Position;

use super::Subscription;
use crate::{App, Problem};

/// How often a keep-alive is sent on an idle stream, so that proxies do not close it.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Parses the `Last-Event-ID` header that a reconnecting client sends.
pub(crate) fn parse_last_event_id(headers: &HeaderMap) -> Result<Option<Position>, Problem> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().map(|number| Some(Position(number)));
    number.map_err(|_| {
        Problem::bad_request(
            "bad_last_event_id",
            "Last-Event-ID must be an event id, which is a number",
        )
    })
}

/// Streams a subscription for as long as the client reads.
pub(crate) fn subscription_response(app: &App, subscription: Subscription) -> Response {
    let closed = Box::pin(app.hub.closed());
    let first = Bytes::from_static(b"retry: 1000\n\n");
    let state = (subscription, closed, Some(first));
    let frames = stream::unfold(state, async |(mut subscription, mut closed, first)| {
        if let Some(first) = first {
            return Some((first, (subscription, closed, None)));
        }
        let sent = tokio::select! {
            biased;
            () = &mut closed => return None,
            frame = subscription.next() => frame?.sse.clone(),
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => match subscription.advance_idle() {
                // Advances the client's position without an event, so that it resumes from here.
                Some(position) => format!("id: {position}\n\n").into(),
                None => Bytes::from_static(b":\n\n"),
            },
        };
        Some((sent, (subscription, closed, None)))
    });
    event_stream_response(Body::from_stream(futures_util::StreamExt::map(
        frames,
        Ok::<_, std::convert::Infallible>,
    )))
}

/// A response that is an event stream.
pub(crate) fn event_stream_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    // Proxies must not buffer the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
