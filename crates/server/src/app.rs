//! Shared state of a running server, available to every handler.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use throughline::{Error, Responder, Session};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access_monitor::AccessMonitor;
use crate::auth::Authenticator;
use crate::events::EventHub;
use crate::metrics::Metrics;
use crate::quota::Quota;
use crate::rate_limit::{CallerRateLimiter, LoginBackoff};
use crate::turns::TurnRegistry;
use crate::{AccessMode, Limits, Problem, ResponderChoice, ResponderError, ServerConfig};

/// Handle to the state of a running server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<AppState>);

/// The state behind an [`App`].
#[derive(Debug)]
pub struct AppState {
    pub(crate) config: ServerConfig,
    pub(crate) authenticator: Authenticator,
    pub(crate) rate_limiter: CallerRateLimiter,
    pub(crate) login_backoff: LoginBackoff,
    pub(crate) access_monitor: AccessMonitor,
    /// Quota for requests in progress.
    pub(crate) request_quota: Arc<Quota>,
    /// Quota for event streams and other long-running requests.
    pub(crate) stream_quota: Arc<Quota>,
    /// Quota for body bytes in transit, in either direction.
    pub(crate) body_quota: Arc<Quota>,
    /// Memory for large bodies, in KiB.
    pub(crate) body_memory: Arc<Semaphore>,
    /// Whether the warning about an unconfigured proxy was already logged.
    pub(crate) proxy_warned: AtomicBool,
    pub(crate) hub: EventHub,
    pub(crate) turns: TurnRegistry,
    pub(crate) metrics: Metrics,
}

impl Deref for App {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}

impl App {
    /// Creates the state and starts the event hub.
    ///
    /// Must be called within a Tokio runtime: a background task reads the event feed until the last
    /// clone is dropped.
    pub fn new(serving: ServerConfig) -> Self {
        let hub = EventHub::start(serving.tl.clone());
        Self(Arc::new(AppState {
            authenticator: Authenticator::new(serving.tl.clone(), serving.gate.clone()),
            rate_limiter: CallerRateLimiter::new(serving.limits.rate),
            login_backoff: LoginBackoff::default(),
            access_monitor: AccessMonitor::start(serving.tl.clone()),
            request_quota: Quota::new(
                serving.limits.requests,
                "too_many_concurrent_requests",
                "requests",
            ),
            stream_quota: Quota::new(serving.limits.streams, "too_many_streams", "streams"),
            body_quota: Quota::new(
                serving.limits.in_flight_bytes,
                "too_many_bytes",
                "body bytes",
            ),
            body_memory: Arc::new(Semaphore::new(kib(serving.limits.buffered_body_bytes))),
            proxy_warned: AtomicBool::new(false),
            turns: TurnRegistry::new(serving.limits.turns),
            metrics: Metrics::new(),
            hub,
            config: serving,
        }))
    }

    /// Clears the token cache after a token was created or revoked by this server.
    pub(crate) fn invalidate_tokens(&self) {
        self.authenticator.clear_token_cache();
        self.access_monitor.check_now();
    }

    /// Waits until memory for a large body of this many bytes is available.
    pub(crate) async fn acquire_body_memory(
        &self,
        bytes: usize,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let most = kib(self.limits().buffered_body_bytes);
        let permits = u32::try_from(kib(bytes).clamp(1, most)).unwrap_or(u32::MAX);
        let waited = Arc::clone(&self.body_memory).acquire_many_owned(permits);
        match tokio::time::timeout(self.limits().response_timeout, waited).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "overloaded",
                "too many large bodies are being processed; try again soon",
            )
            .with_retry_after(1)),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns the default responder of a session.
    pub(crate) async fn responder(&self, session: &Session) -> Result<Responder, ResponderError> {
        let responders = &self.config.responders;
        responders
            .responder(Some(session), &ResponderChoice::default())
            .await
    }

    /// Returns whether requests are currently accepted without a token.
    pub async fn is_open(&self) -> Result<bool, Error> {
        match self.config.gate {
            AccessMode::Tokens => Ok(false),
            AccessMode::Open(_) => self.authenticator.is_open().await,
        }
    }

    /// Waits until running turns have finished, and stops those that exceed the timeout.
    pub async fn finish_turns(&self, patience: std::time::Duration) {
        self.turns.drain(patience).await;
    }
}

fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024).max(1)
}
