//! An event subscription: catches up from the store, then follows the hub.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use throughline::{Owner, Position, SessionId, Throughline};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::hub::Topic;
use super::{EventFrame, EventHub};
use crate::{App, Problem};

/// Changes read at a time.
const PAGE_SIZE: usize = 512;

/// Which events a subscriber receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFilter {
    /// Only events of this session.
    pub(crate) session: Option<SessionId>,
    /// Only events with these names or actions; all if empty.
    pub(crate) kinds: Vec<String>,
    /// The last event received; new events only if `None`.
    pub(crate) after: Option<Position>,
}

/// An event subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    app: App,
    tl: Throughline,
    filter: EventFilter,
    hub: EventHub,
    receiver: broadcast::Receiver<Arc<EventFrame>>,
    /// Position up to which everything was delivered or filtered out.
    read_to: Position,
    /// Whether the store has changes that were not delivered yet.
    catching_up: bool,
    pending: VecDeque<Arc<EventFrame>>,
}

impl Subscription {
    /// Starts a subscription. The first frame contains the current position in the feed.
    pub(crate) async fn start(
        app: &App,
        tl: &Throughline,
        filter: EventFilter,
    ) -> Result<Self, Problem> {
        let topic = match &filter.session {
            Some(session) => Topic::Session(tl.owner().session(session)),
            None => Topic::Owner(tl.owner().clone()),
        };
        let receiver = app.hub.subscribe(&topic).await;
        let last = tl.store().last_position().await?;
        let mut waiting = VecDeque::new();
        let read_to = match filter.after {
            Some(after) if after <= last && last.0 - after.0 <= app.limits().event_lag => after,
            Some(after) => {
                app.metrics.lagged_subscribers.inc();
                waiting.push_back(Arc::new(reset_frame(after, last)));
                last
            }
            None => last,
        };
        waiting.push_front(Arc::new(EventFrame::at_position(
            read_to,
            "ready",
            &json!({"position": read_to}),
        )));
        app.metrics.subscribers.inc();
        Ok(Self {
            app: app.clone(),
            tl: tl.clone(),
            filter,
            hub: app.hub.clone(),
            receiver,
            read_to,
            catching_up: true,
            pending: waiting,
        })
    }

    /// Returns the next event; `None` once there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Arc<EventFrame>> {
        loop {
            if let Some(frame) = self.pending.pop_front() {
                return Some(frame);
            }
            if self.catching_up {
                if let Err(error) = self.read_next_page().await {
                    tracing::error!(%error, "cannot read events");
                    return None;
                }
                continue;
            }
            match self.receiver.recv().await {
                Ok(frame) => {
                    if let Some(position) = frame.position {
                        if position <= self.read_to {
                            continue;
                        }
                        self.read_to = position;
                    }
                    if self.matches(&frame) {
                        return Some(frame);
                    }
                }
                Err(RecvError::Lagged(skipped)) => {
                    // Missed changes are read from the store; missed transient events are lost and
                    // reported so.
                    self.catching_up = true;
                    let data = json!({"skipped": skipped, "position": self.read_to});
                    return Some(Arc::new(EventFrame::transient("lagged", &data)));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Advances past events that were filtered out; returns the new position, or `None` while
    /// catching up.
    pub(crate) fn advance_idle(&mut self) -> Option<Position> {
        let handed = self.hub.published_to();
        if self.catching_up || !self.pending.is_empty() || !self.receiver.is_empty() {
            return None;
        }
        self.read_to = self.read_to.max(handed);
        Some(self.read_to)
    }

    async fn read_next_page(&mut self) -> Result<(), throughline::StoreError> {
        let store = self.tl.store();
        let last = store.last_position().await?;
        if last.0.saturating_sub(self.read_to.0) > self.app.limits().event_lag {
            self.app.metrics.lagged_subscribers.inc();
            self.pending
                .push_back(Arc::new(reset_frame(self.read_to, last)));
            self.read_to = last;
            return Ok(());
        }
        let changes = store.changes(self.read_to, PAGE_SIZE).await?;
        let Some(latest) = changes.last() else {
            self.catching_up = false;
            return Ok(());
        };
        self.read_to = latest.position;
        let (owner, session) = (self.tl.owner(), self.filter.session.as_ref());
        let mine = |of: &Owner, id: &SessionId| of == owner && session.is_none_or(|one| one == id);
        let frames = changes
            .iter()
            .filter(|change| mine(&change.owner, &change.session))
            .map(|change| Arc::new(EventFrame::from_change(change)))
            .filter(|frame| self.matches(frame));
        let frames: Vec<_> = frames.collect();
        self.pending.extend(frames);
        Ok(())
    }

    fn matches(&self, frame: &EventFrame) -> bool {
        let kinds = &self.filter.kinds;
        kinds.is_empty()
            || kinds
                .iter()
                .any(|kind| kind == frame.name || *kind == frame.action)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.app.metrics.subscribers.dec();
    }
}

/// The event for a subscriber that is too far behind. It must refetch what it missed; nothing is
/// skipped silently.
fn reset_frame(from: Position, to: Position) -> EventFrame {
    let why = "too far behind to resume: reload, and continue from this id";
    EventFrame::at_position(
        to,
        "reset",
        &json!({"from": from, "position": to, "why": why}),
    )
}
