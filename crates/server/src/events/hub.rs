//! Distributes events to subscribers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use throughline::{Change, Owner, Position, SessionId, SessionRef, StoreError, Throughline};
use tokio::sync::{Notify, broadcast, watch};

use super::EventFrame;

/// How often the feed is polled for changes by other processes, if the store does not notify.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Changes read at a time.
const PAGE_SIZE: usize = 512;
/// Events a subscriber may lag before it has to catch up from the store.
const CHANNEL_CAPACITY: usize = 1_024;

/// What a subscriber listens to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Owner(Owner),
    Session(SessionRef),
}

/// Distributes events to subscribers. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct EventHub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    topics: Mutex<HashMap<Topic, broadcast::Sender<Arc<EventFrame>>>>,
    /// Feed position up to which events have been published.
    published_to: AtomicU64,
    /// Whether the feed is being read; it is not while there are no subscribers.
    awake: watch::Sender<bool>,
    wake: Arc<Notify>,
    closed: watch::Sender<bool>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The feed reader finds the hub gone and ends.
        self.wake.notify_one();
    }
}

impl EventHub {
    /// Starts reading the store's feed.
    pub(crate) fn start(tl: Throughline) -> Self {
        let wake = Arc::new(Notify::new());
        let hub = Self(Arc::new(Inner {
            topics: Mutex::default(),
            published_to: AtomicU64::new(0),
            awake: watch::Sender::new(false),
            wake: Arc::clone(&wake),
            closed: watch::Sender::new(false),
        }));
        tokio::spawn(run_feed_reader(Arc::downgrade(&hub.0), wake, tl));
        hub
    }

    /// Signals that this process appended something.
    pub(crate) fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// Closes the hub; subscribers receive the end of their stream.
    pub(crate) fn close(&self) {
        self.0.closed.send_replace(true);
        self.0.topics().clear();
    }

    /// Resolves once the hub is closed.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut closed = self.0.closed.subscribe();
        async move {
            // An error means that the hub was dropped, which is equivalent.
            let _ = closed.wait_for(|closed| *closed).await;
        }
    }

    /// Feed position up to which events have been published.
    pub(super) fn published_to(&self) -> Position {
        Position(self.0.published_to.load(Ordering::Acquire))
    }

    /// Subscribes to a topic. Every change from the moment this returns is delivered; earlier ones
    /// are in the store.
    pub(super) async fn subscribe(&self, topic: &Topic) -> broadcast::Receiver<Arc<EventFrame>> {
        let receiver = {
            let mut topics = self.0.topics();
            let sender = topics.entry(topic.clone());
            let sender = sender.or_insert_with(|| broadcast::Sender::new(CHANNEL_CAPACITY));
            sender.subscribe()
        };
        let mut awake = self.0.awake.subscribe();
        self.wake();
        let _ = awake.wait_for(|awake| *awake).await;
        receiver
    }

    /// Subscribes to the next event of an owner, from the moment this returns. The inner future
    /// resolves to `false` if there will be no more events.
    pub(crate) async fn next_event(
        &self,
        owner: &Owner,
    ) -> impl Future<Output = bool> + Send + 'static {
        let mut heard = self.subscribe(&Topic::Owner(owner.clone())).await;
        async move { !matches!(heard.recv().await, Err(broadcast::error::RecvError::Closed)) }
    }

    /// Publishes a transient event, which is not stored.
    pub(crate) fn publish_transient(
        &self,
        session: &SessionRef,
        name: &'static str,
        data: &impl serde::Serialize,
    ) {
        if self.0.senders(&session.owner, &session.id).is_empty() {
            return;
        }
        let frame = EventFrame::transient(name, data);
        self.0.send(&session.owner, &session.id, &Arc::new(frame));
    }
}

impl Inner {
    fn topics(&self) -> MutexGuard<'_, HashMap<Topic, broadcast::Sender<Arc<EventFrame>>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn senders(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Vec<broadcast::Sender<Arc<EventFrame>>> {
        let topics = self.topics();
        let all = Topic::Owner(owner.clone());
        let one = Topic::Session(owner.session(session));
        [all, one]
            .iter()
            .filter_map(|topic| topics.get(topic).cloned())
            .collect()
    }

    fn send(&self, owner: &Owner, session: &SessionId, frame: &Arc<EventFrame>) {
        for listener in self.senders(owner, session) {
            // Having no subscribers is not an error.
            let _ = listener.send(Arc::clone(frame));
        }
    }

    fn publish(&self, change: &Change) {
        let listeners = self.senders(&change.owner, &change.session);
        if listeners.is_empty() {
            return;
        }
        let frame = Arc::new(EventFrame::from_change(change));
        for listener in listeners {
            let _ = listener.send(Arc::clone(&frame));
        }
    }

    /// Stops reading the feed if there are no subscribers, and returns whether it did. Runs under
    /// the lock, so that a concurrent subscriber is noticed.
    fn sleep_if_idle(&self) -> bool {
        let mut topics = self.topics();
        topics.retain(|_, sender| sender.receiver_count() > 0);
        if topics.is_empty() {
            self.awake.send_replace(false);
        }
        topics.is_empty()
    }
}

/// Reads the feed for as long as the hub exists.
async fn run_feed_reader(hub: Weak<Inner>, wake: Arc<Notify>, tl: Throughline) {
    let mut read_to: Option<Position> = None;
    loop {
        let Some(inner) = hub.upgrade() else {
            return;
        };
        if inner.sleep_if_idle() {
            read_to = None;
            drop(inner);
            wake.notified().await;
            continue;
        }
        match publish_new_changes(&inner, &tl, read_to).await {
            Ok((position, more)) => {
                read_to = Some(position);
                inner.published_to.store(position.0, Ordering::Release);
                inner.awake.send_replace(true);
                if more {
                    continue;
                }
            }
            Err(error) => tracing::error!(%error, "cannot read events"),
        }
        drop(inner);
        tokio::select! {
            () = wake.notified() => {}
            () = wait_for_changes(&tl, read_to) => {}
        }
    }
}

/// Waits until there may be changes that this process did not append.
async fn wait_for_changes(tl: &Throughline, read_to: Option<Position>) {
    // Without a position, the last read failed.
    let waited = match read_to {
        Some(after) => tl.store().wait_for_change(after).await,
        None => Ok(false),
    };
    match waited {
        Ok(true) => {}
        Ok(false) => tokio::time::sleep(POLL_INTERVAL).await,
        Err(error) => {
            tracing::error!(%error, "cannot check for new events");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Publishes new changes; returns how far it got and whether there are more. The first call only
/// determines the current position.
async fn publish_new_changes(
    inner: &Inner,
    tl: &Throughline,
    read_to: Option<Position>,
) -> Result<(Position, bool), StoreError> {
    let Some(after) = read_to else {
        return Ok((tl.store().last_position().await?, false));
    };
    let changes = tl.store().changes(after, PAGE_SIZE).await?;
    for change in &changes {
        inner.publish(change);
    }
    if changes.is_empty() {
        let last = tl.store().last_position().await?;
        if last < after {
            // A backup was restored and positions are reused. Subscribers reconnect with a position
            // that no longer exists, and receive a `reset`.
            tracing::warn!(%after, %last, "the store was restored to an earlier state; closing event streams");
            inner.topics().clear();
            return Ok((last, false));
        }
    }
    let position = changes.last().map_or(after, |change| change.position);
    Ok((position, changes.len() == PAGE_SIZE))
}
