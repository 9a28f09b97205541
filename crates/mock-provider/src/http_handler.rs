//! Handles HTTP requests to the mock provider.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame as Piece, Incoming};
use serde_json::Value;

use crate::request::KEY_HEADERS;
use crate::server::ServerState;
use crate::sse_frame::SseFrame;
use crate::{Fault, ProviderApi, Reply, Request};

type Body = StreamBody<BoxStream<'static, io::Result<Piece<Bytes>>>>;
type Response = hyper::Response<Body>;

/// Handles one request.
pub(crate) async fn handle_request(
    request: hyper::Request<Incoming>,
    shared: &ServerState,
) -> Result<Response, Infallible> {
    let Some(wire) = ProviderApi::from_path(request.uri().path()) else {
        return Ok(text_response(404, "text/plain", "not found".to_owned()));
    };
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return Ok(text_response(400, "text/plain", error.to_string())),
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return Ok(text_response(
            400,
            "text/plain",
            "the body is not valid JSON".to_owned(),
        ));
    };
    let mut headers = BTreeMap::new();
    let mut key = None;
    for (name, value) in &head.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        if KEY_HEADERS.contains(&name.as_str()) {
            key = Some(value);
        } else {
            headers.insert(name.as_str().to_owned(), value);
        }
    }
    let request = Request {
        path: head.uri.path().to_owned(),
        api: wire,
        headers,
        has_key: key.is_some(),
        body,
    };
    let is_known = shared.accepts_key(key.as_deref());
    shared.record_request(request.clone());
    let mut reply = shared.script.next_reply(&request);
    if !is_known {
        reply.fault = Some(Fault::WrongKey);
    }
    Ok(respond(reply, &request).await)
}

async fn respond(reply: Reply, request: &Request) -> Response {
    let (wire, model) = (request.api, request.model());
    if let Some(fault) = &reply.fault {
        if *fault == Fault::Hang {
            return std::future::pending().await;
        }
        if *fault == Fault::HtmlPage {
            return text_response(200, "text/html", "<html>Welcome!</html>".to_owned());
        }
        if let Some(refusal) = fault.error_response(wire, model) {
            let mut response = text_response(refusal.status, "application/json", refusal.body);
            for (name, value) in refusal.headers {
                if let Ok(value) = value.parse() {
                    response.headers_mut().insert(name, value);
                }
            }
            return response;
        }
    }
    if !request.is_streaming() || wire == ProviderApi::Embeddings {
        tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
        let body = match reply.fault {
            Some(Fault::BadJson) => r#"{"id": "#.to_owned(),
            _ => wire.body(&reply, request).to_string(),
        };
        return text_response(200, "application/json", body);
    }
    let frames = match reply.fault {
        Some(Fault::BadJson) => vec![bad_json_frame()],
        _ => wire.frames(&reply, model),
    };
    build_response(
        200,
        "text/event-stream",
        stream_frames(frames, &reply, wire),
    )
}

/// Returns an event that is not valid JSON.
fn bad_json_frame() -> SseFrame {
    SseFrame {
        text: "event: content_block_delta\ndata: {\"type\": \"content_block_de\n\n".to_owned(),
        is_delta: true,
    }
}

/// Sends the events with their delays, up to the fault.
fn stream_frames(
    mut frames: Vec<SseFrame>,
    reply: &Reply,
    wire: ProviderApi,
) -> BoxStream<'static, io::Result<Piece<Bytes>>> {
    let pause = Duration::from_millis(reply.delay_ms);
    let fault = reply.fault.clone();
    if let Some(after) = fault.as_ref().and_then(Fault::after) {
        let mut pieces = frames
            .iter()
            .enumerate()
            .filter(|(_, frame)| frame.is_delta);
        if let Some((end, _)) = pieces.nth(after) {
            frames.truncate(end);
        }
    }
    if matches!(fault, Some(Fault::Overloaded { .. })) {
        frames.push(wire.overloaded_frame());
    }
    let sent = stream::iter(frames).then(move |frame| async move {
        if frame.is_delta && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(Piece::data(Bytes::from(frame.text)))
    });
    let ending = stream::once(async move {
        match fault {
            Some(Fault::Stall { .. }) => std::future::pending().await,
            Some(Fault::Disconnect { .. }) => {
                // Let the sent data arrive before the connection breaks.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some(Err(io::Error::other("cut")))
            }
            _ => None,
        }
    });
    sent.chain(ending.filter_map(std::future::ready)).boxed()
}

fn text_response(status: u16, kind: &'static str, body: String) -> Response {
    let whole = stream::once(std::future::ready(Ok(Piece::data(Bytes::from(body)))));
    build_response(status, kind, whole.boxed())
}

fn build_response(
    status: u16,
    kind: &'static str,
    body: BoxStream<'static, io::Result<Piece<Bytes>>>,
) -> Response {
    let mut response = Response::new(StreamBody::new(body));
    if let Ok(status) = status.try_into() {
        *response.status_mut() = status;
    }
    let headers = response.headers_mut();
    headers.insert(
        "content-type",
        hyper::header::HeaderValue::from_static(kind),
    );
    response
}
