//! One reader of events.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use throughline::{Owner, Position, SessionId, Throughline};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::hub::Topic;
use super::{Frame, Hub};
use crate::{App, Problem};

/// Changes read at a time.
const PAGE: usize = 512;

/// What a reader wants to hear of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
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
    wanted: Wanted,
    hub: Hub,
    receiver: broadcast::Receiver<Arc<Frame>>,
    /// Everything up to here was told or did not matter.
    read_to: Position,
    /// Whether the store has more than was told.
    behind: bool,
    waiting: VecDeque<Arc<Frame>>,
}

impl Subscription {
    /// Starts to listen. The first frame says where in the feed the reader is.
    pub(crate) async fn begin(
        app: &App,
        tl: &Throughline,
        wanted: Wanted,
    ) -> Result<Self, Problem> {
        let topic = match &wanted.session {
            Some(session) => Topic::Session(tl.owner().session(session)),
            None => Topic::Owner(tl.owner().clone()),
        };
        let receiver = app.hub.listen(&topic).await;
        let last = tl.store().last_position().await?;
        let mut waiting = VecDeque::new();
        let read_to = match wanted.after {
            Some(after) if after <= last && last.0 - after.0 <= app.limits().behind => after,
            Some(after) => {
                app.metrics.behind.inc();
                waiting.push_back(Arc::new(reset(after, last)));
                last
            }
            None => last,
        };
        waiting.push_front(Arc::new(Frame::at(
            read_to,
            "ready",
            &json!({"position": read_to}),
        )));
        app.metrics.subscribers.inc();
        Ok(Self {
            app: app.clone(),
            tl: tl.clone(),
            wanted,
            hub: app.hub.clone(),
            receiver,
            read_to,
            behind: true,
            waiting,
        })
    }

    /// The next event; none once there will be no more.
    pub(crate) async fn next(&mut self) -> Option<Arc<Frame>> {
        loop {
            if let Some(frame) = self.waiting.pop_front() {
                return Some(frame);
            }
            if self.behind {
                if let Err(error) = self.read_on().await {
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
                    if self.wants(&frame) {
                        return Some(frame);
                    }
                }
                Err(RecvError::Lagged(skipped)) => {
                    // What is kept is read from the store; what is not is gone, and said so.
                    self.behind = true;
                    let told = json!({"skipped": skipped, "position": self.read_to});
                    return Some(Arc::new(Frame::passing("lagged", &told)));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// How far the reader has come without hearing of it; none while it is still behind.
    pub(crate) fn quietly_at(&mut self) -> Option<Position> {
        let handed = self.hub.handed();
        if self.behind || !self.waiting.is_empty() || !self.receiver.is_empty() {
            return None;
        }
        self.read_to = self.read_to.max(handed);
        Some(self.read_to)
    }

    async fn read_on(&mut self) -> Result<(), throughline::StoreError> {
        let store = self.tl.store();
        let last = store.last_position().await?;
        if last.0.saturating_sub(self.read_to.0) > self.app.limits().behind {
            self.app.metrics.behind.inc();
            self.waiting.push_back(Arc::new(reset(self.read_to, last)));
            self.read_to = last;
            return Ok(());
        }
        let changes = store.changes(self.read_to, PAGE).await?;
        let Some(latest) = changes.last() else {
            self.behind = false;
            return Ok(());
        };
        self.read_to = latest.position;
        let (owner, session) = (self.tl.owner(), self.wanted.session.as_ref());
        let mine = |of: &Owner, id: &SessionId| of == owner && session.is_none_or(|one| one == id);
        let frames = changes
            .iter()
            .filter(|change| mine(&change.owner, &change.session))
            .map(|change| Arc::new(Frame::of(change)))
            .filter(|frame| self.wants(frame));
        let frames: Vec<_> = frames.collect();
        self.waiting.extend(frames);
        Ok(())
    }

    fn wants(&self, frame: &Frame) -> bool {
        let kinds = &self.wanted.kinds;
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
fn reset(from: Position, to: Position) -> Frame {
    let why = "too far behind to be told everything: list again, and go on from here";
    Frame::at(
        to,
        "reset",
        &json!({"from": from, "position": to, "why": why}),
    )
}
