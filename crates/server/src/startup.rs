//! Answers requests while the store is not available yet.
//!
//! The process listens right away so that `/health` succeeds; every other path, including `/ready`,
//! returns 503 with `Retry-After`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::listen::Connections;
use crate::{Limits, Problem, Tls, api};

/// How long connections from the startup phase may take to finish once the store is available.
const CONNECTION_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves startup responses until `ready` resolves, then returns its output.
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
                "the server has started, but its store is not available yet",
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
                // New connections need not wait for these to finish.
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
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
