//! One reader of events.

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

/// What a reader wants to hear of.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFilter {
    /// Only of this session.
    pub(crate) session: Option<SessionId>,
    /// Only events of these names or actions; all, where there are none.
    pub(crate) kinds: Vec<String>,
    /// What the reader heard last; from now on, where there is nothing.
    pub(crate) after: Option<Position>,
}

/// One reader of events.
#[derive(Debug)]
pub(crate) struct Subscription {
    app: App,
    tl: Throughline,
    filter: EventFilter,
    hub: EventHub,
    receiver: broadcast::Receiver<Arc<EventFrame>>,
    /// Everything up to here was told or did not matter.
    read_to: Position,
    /// Whether the store has more than was told.
    catching_up: bool,
    pending: VecDeque<Arc<EventFrame>>,
}

impl Subscription {
    /// Starts to listen. The first frame says where in the feed the reader is.
    pub(crate) async fn start(
        app: &App,
        tl: &Throughline,
        wanted: EventFilter,
    ) -> Result<Self, Problem> {
        let topic = match &wanted.session {
            Some(session) => Topic::Session(tl.owner().session(session)),
            None => Topic::Owner(tl.owner().clone()),
        };
        let receiver = app.hub.subscribe(&topic).await;
        let last = tl.store().last_position().await?;
        let mut waiting = VecDeque::new();
        let read_to = match wanted.after {
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
            filter: wanted,
            hub: app.hub.clone(),
            receiver,
            read_to,
            catching_up: true,
            pending: waiting,
        })
    }

    /// The next event; none once there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Arc<EventFrame>> {
        loop {
            if let Some(frame) = self.pending.pop_front() {
                return Some(frame);
            }
            if self.catching_up {
                if let Err(error) = self.read_next_page().await {
                    tracing::error!(%error, "events cannot be read");
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
                    // What is kept is read from the store; what is not is gone, and said so.
                    self.catching_up = true;
                    let told = json!({"skipped": skipped, "position": self.read_to});
                    return Some(Arc::new(EventFrame::transient("lagged", &told)));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// How far the reader has come without hearing of it; none while it is still behind.
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

/// The reader is too far behind: what is between has to be fetched, and is not skipped
/// silently.
fn reset_frame(from: Position, to: Position) -> EventFrame {
    let why = "too far behind to be told everything: list again, and go on from here";
    EventFrame::at_position(
        to,
        "reset",
        &json!({"from": from, "position": to, "why": why}),
    )
}
