//! Events over a WebSocket, one message per event: `{"id", "event", "data"}`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};

use super::Subscription;
use crate::App;
use crate::guard::StreamSlot;

/// How often a ping is sent.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long sending the close message may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(400);

/// Sends events until the client disconnects or its access ends.
pub(crate) async fn serve_websocket(
    app: App,
    mut subscription: Subscription,
    mut socket: WebSocket,
    slot: Arc<StreamSlot>,
) {
    let mut closed = Box::pin(app.hub.closed());
    let mut ended = Box::pin(slot.watch.ended());
    let farewell = loop {
        let message = tokio::select! {
            biased;
            () = &mut closed => break None,
            end = &mut ended => break Some(CloseFrame {
                code: close_code::POLICY,
                reason: format!("unauthorized: {}", end.detail()).into(),
            }),
            heard = socket.recv() => match heard {
                // Incoming messages are ignored, except for a close.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            frame = subscription.next() => match frame {
                Some(frame) => Message::Text(frame.json.clone().into()),
                None => break None,
            },
            () = tokio::time::sleep(PING_INTERVAL) => Message::Ping(bytes::Bytes::new()),
        };
        let sent = tokio::select! {
            biased;
            sent = socket.send(message) => sent,
            // A client that does not read must not keep the connection open beyond its access.
            _ = &mut ended => return,
        };
        if sent.is_err() {
            return;
        }
    };
    let goodbye = socket.send(Message::Close(farewell));
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
}
