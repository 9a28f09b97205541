//! What every handler works with.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use throughline::{Error, Session, Voice};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::AccessMonitor;
use crate::auth::Doorkeeper;
use crate::events::Hub;
use crate::metrics::Metrics;
use crate::quota::Quota;
use crate::rate::{LoginBackoff, Rates};
use crate::turns::Turns;
use crate::{Choice, Gate, Limits, Problem, Serving, VoiceError};

/// A server at work. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

/// What an [`App`] is made of.
#[derive(Debug)]
pub struct Inner {
    pub(crate) serving: Serving,
    pub(crate) door: Doorkeeper,
    pub(crate) rates: Rates,
    pub(crate) logins: LoginBackoff,
    pub(crate) access: AccessMonitor,
    /// Requests being answered.
    pub(crate) requests: Arc<Quota>,
    /// Event streams and other long requests.
    pub(crate) streams: Arc<Quota>,
    /// Bytes of bodies on their way in or out.
    pub(crate) in_flight: Arc<Quota>,
    /// KiB of memory for large bodies.
    pub(crate) memory: Arc<Semaphore>,
    /// Whether it was said that an unnamed proxy passes requests on.
    pub(crate) proxy_warned: AtomicBool,
    pub(crate) hub: Hub,
    pub(crate) turns: Turns,
    pub(crate) metrics: Metrics,
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    /// Gets to work. Needs a runtime: events are fed by a task of their own, which ends
    /// with the last of the clones.
    pub fn new(serving: Serving) -> Self {
        let hub = Hub::start(serving.tl.clone());
        Self(Arc::new(Inner {
            door: Doorkeeper::new(serving.tl.clone(), serving.gate.clone()),
            rates: Rates::new(serving.limits.rate),
            logins: LoginBackoff::default(),
            access: AccessMonitor::start(serving.tl.clone()),
            requests: Quota::new(
                serving.limits.requests,
                "too_many_concurrent_requests",
                "requests",
            ),
            streams: Quota::new(serving.limits.streams, "too_many_streams", "streams"),
            in_flight: Quota::new(
                serving.limits.in_flight,
                "too_many_bytes",
                "bytes of bodies",
            ),
            memory: Arc::new(Semaphore::new(kib(serving.limits.memory))),
            proxy_warned: AtomicBool::new(false),
            turns: Turns::new(serving.limits.turns),
            metrics: Metrics::new(),
            hub,
            serving,
        }))
    }

    /// Forgets what is known of tokens, since one was made or revoked here.
    pub(crate) fn tokens_changed(&self) {
        self.door.forget();
        self.access.check_now();
    }

    /// Waits for memory for so many bytes of a large body.
    pub(crate) async fn memory(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let most = kib(self.limits().memory);
        let wanted = u32::try_from(kib(bytes).clamp(1, most)).unwrap_or(u32::MAX);
        let waited = Arc::clone(&self.memory).acquire_many_owned(wanted);
        match tokio::time::timeout(self.limits().time, waited).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "overloaded",
                "too many large bodies are being processed; try again soon",
            )
            .after(1)),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.serving.limits
    }

    /// Who answers in a session, where nobody chooses.
    pub(crate) async fn voice(&self, session: &Session) -> Result<Voice, VoiceError> {
        let voices = &self.serving.voices;
        voices.voice(Some(session), &Choice::default()).await
    }

    /// Whether whoever reaches it is let in at the moment.
    pub async fn is_open(&self) -> Result<bool, Error> {
        match self.serving.gate {
            Gate::Tokens => Ok(false),
            Gate::Open(_) => self.door.is_open().await,
        }
    }

    /// Waits until the turns under way are done, or stops them after a while.
    pub async fn finish(&self, patience: std::time::Duration) {
        self.turns.finish(patience).await;
    }
}

fn kib(bytes: usize) -> usize {
    bytes.div_ceil(1024).max(1)
}
