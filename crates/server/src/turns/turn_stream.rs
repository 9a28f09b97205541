//! One turn, and everything that was told of it.

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

/// What a turn is called by.
pub(crate) type TurnId = EntryId;

/// Something told of a turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnStreamEvent {
    /// What it is called: `message:delta`.
    pub(crate) name: &'static str,
    /// What it says, as JSON.
    pub(crate) data: String,
}

/// One turn.
#[derive(Debug)]
pub(crate) struct TurnStream {
    id: TurnId,
    key: Option<String>,
    events: Mutex<Vec<Arc<TurnStreamEvent>>>,
    count: watch::Sender<usize>,
    outcome: OnceLock<(Instant, Result<TurnReport, Problem>)>,
    /// Notified when the answer is no longer wanted.
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

    /// When it ended.
    pub(super) fn ended_at(&self) -> Option<Instant> {
        self.outcome.get().map(|(at, _)| *at)
    }

    /// What became of it, once that is known.
    pub(crate) fn outcome(&self) -> Option<&Result<TurnReport, Problem>> {
        self.outcome.get().map(|(_, outcome)| outcome)
    }

    /// Whether it ended without a whole answer.
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

    /// Tells of something.
    pub(super) fn emit(&self, name: &'static str, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        let count = {
            let mut all = self.events();
            all.push(Arc::new(TurnStreamEvent { name, data }));
            all.len()
        };
        self.count.send_replace(count);
    }

    /// It has ended, with a last word.
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

    /// The answer is no longer wanted.
    pub(crate) fn stop(&self) {
        self.stop.notify_one();
    }

    /// Waits for its end.
    pub(crate) async fn wait(&self) {
        let mut count = self.count.subscribe();
        let _ = count.wait_for(|_| self.ended_at().is_some()).await;
    }

    /// What was told after so many; waits where there is nothing new, and is empty once
    /// there will be no more.
    pub(crate) async fn events_after(&self, seen: usize) -> Vec<Arc<TurnStreamEvent>> {
        let mut count = self.count.subscribe();
        let news = |count: &usize| *count > seen || self.ended_at().is_some();
        let _ = count.wait_for(news).await;
        self.events()
            .get(seen..)
            .map(<[_]>::to_vec)
            .unwrap_or_default()
    }

    /// Everything told of it after so many, as server-sent events numbered from 1.
    pub(crate) fn sse_response(self: Arc<Self>, seen: usize) -> Response {
        let frames = stream::unfold((self, seen), async |(live, seen)| {
            let new = live.events_after(seen).await;
            if new.is_empty() {
                return None;
            }
            let mut text = String::new();
            for (number, told) in (seen + 1..).zip(&new) {
                let TurnStreamEvent { name, data } = &**told;
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
