//! The same events over a WebSocket, a message each: `{"id", "event", "data"}`.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};

use super::Subscription;
use crate::App;

/// How often a sign of life is asked for.
const BREATH: Duration = Duration::from_secs(30);

/// Tells everything until the other side leaves.
pub(crate) async fn speak(app: App, mut subscription: Subscription, mut socket: WebSocket) {
    let mut closed = Box::pin(app.hub.closed());
    loop {
        let said = tokio::select! {
            biased;
            () = &mut closed => break,
            heard = socket.recv() => match heard {
                // Nothing is asked over this channel; a reader that leaves says so.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            frame = subscription.next() => match frame {
                Some(frame) => Message::Text(frame.json.clone().into()),
                None => break,
            },
            () = tokio::time::sleep(BREATH) => Message::Ping(bytes::Bytes::new()),
        };
        if socket.send(said).await.is_err() {
            return;
        }
    }
    let _ = socket.send(Message::Close(None)).await;
}
