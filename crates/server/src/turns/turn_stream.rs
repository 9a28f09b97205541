//! A turn and all the events emitted about it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use throughline::EntryId;
use tokio::sync::{Notify, watch};

use super::TurnReport;
use crate::Problem;
use crate::events::event_stream_response;

/// Id of a turn.
pub(crate) type TurnId = EntryId;

/// An event of a turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnStreamEvent {
    /// Event name, such as `message:delta`.
    pub(crate) name: &'static str,
    /// Event data, as JSON.
    pub(crate) data: String,
}

/// A running or finished turn.
#[derive(Debug)]
pub(crate) struct TurnStream {
    id: TurnId,
    key: Option<String>,
    events: Mutex<Vec<Arc<TurnStreamEvent>>>,
    count: watch::Sender<usize>,
    outcome: OnceLock<(Instant, Result<TurnReport, Problem>)>,
    /// Notified when the turn is to be stopped.
    pub(super) stop: Notify,
}

impl TurnStream {
    pub(super) fn new(id: TurnId, key: Option<String>) -> Self {
        Self {
            id,
            key,
            events: Mutex::default(),
            count: watch::Sender::new(0),
            outcome: OnceLock::new(),
            stop: Notify::new(),
        }
    }

    pub(crate) fn id(&self) -> &TurnId {
        &self.id
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// When the turn ended.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.outcome.get().map(|(at, _)| *at)
    }

    /// The result of the turn, once it is known.
    pub(crate) fn outcome(&self) -> Option<&Result<TurnReport, Problem>> {
        self.outcome.get().map(|(_, outcome)| outcome)
    }

    /// Whether the turn ended without a complete answer.
    pub(super) fn has_failed(&self) -> bool {
        match self.outcome() {
            Some(Ok(outcome)) => outcome.failed.is_some(),
            Some(Err(_)) => true,
            None => false,
        }
    }

    fn events(&self) -> MutexGuard<'_, Vec<Arc<TurnStreamEvent>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Emits an event.
    pub(super) fn emit(&self, name: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        let count = {
            let mut all = self.events();
            all.push(Arc::new(TurnStreamEvent { name, data }));
            all.len()
        };
        self.count.send_replace(count);
    }

    /// Ends the turn with a final event.
    pub(super) fn finish(
        &self,
        name: &'static str,
        data: &impl Serialize,
        outcome: Result<TurnReport, Problem>,
    ) {
        self.emit(name, data);
        let _ = self.outcome.set((Instant::now(), outcome));
        self.count.send_modify(|_| {});
    }

    /// Requests that the turn be stopped.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }

    /// Waits until the turn has ended.
    pub(crate) async fn wait(&self) {
        let mut count = self.count.subscribe();
        let _ = count.wait_for(|_| self.ended_at().is_some()).await;
    }

    /// Returns the events after the first `seen`. Waits if there are none yet; empty once there
    /// will be no more.
    pub(crate) async fn events_after(&self, seen: usize) -> Vec<Arc<TurnStreamEvent>> {
        let mut count = self.count.subscribe();
        let news = |count: &usize| *count > seen || self.ended_at().is_some();
        let _ = count.wait_for(news).await;
        self.events()
            .get(seen..)
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    }

    /// Streams the events after the first `seen` as server-sent events, numbered from 1.
    pub(crate) fn sse_response(self: Arc<Self>, seen: usize) -> Response {
        let frames = stream::unfold((self, seen), async |(live, seen)| {
            let new = live.events_after(seen).await;
            if new.is_empty() {
                return None;
            }
            let mut text = String::new();
            for (number, event) in (seen + 1..).zip(&new) {
                let TurnStreamEvent { name, data } = &**event;
                text.push_str(&format!("id: {number}\nevent: {name}\ndata: {data}\n\n"));
            }
            let seen = seen + new.len();
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from(text)),
                (live, seen),
            ))
        });
        event_stream_response(Body::from_stream(frames))
    }
}
