//! What a server answers before its store can be used.
//!
//! The process lives and listens, so that `/health` is answered; everything else, `/ready`
//! among it, is 503 and worth trying again.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::listen::Connections;
use crate::{Limits, Problem, Tls, api};

/// How long connections of this time may take to end once the store is there.
const CONNECTION_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers that the store is not ready until `ready` is done; gives what that came to.
pub async fn serve_until_ready<T>(
    listener: &TcpListener,
    tls: Option<&Tls>,
    ready: impl Future<Output = T>,
) -> T {
    let router = Router::new()
        .route("/health", get(api::meta::health))
        .fallback(async || {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "the server has started, and its store cannot be reached yet",
            )
            .with_retry_after(1)
        });
    let limits = Limits::default();
    let connections = Connections::new(&limits);
    let room = Arc::new(Semaphore::new(limits.connections));
    tokio::pin!(ready);
    loop {
        let accepting = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            done = &mut ready => {
                // New connections need not wait for these to end.
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(CONNECTION_DRAIN_TIMEOUT, connections.drain()).await;
                });
                return done;
            }
            accepted = accepting => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let answered = connections.serve_stream(stream, peer, tls.cloned(), router.clone());
                tokio::spawn(async move {
                    answered.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
