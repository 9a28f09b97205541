//! Live change events.
//!
//! Every change in the store is an event whose id is its position in the feed. One task reads the
//! feed, woken by local appends and polling for those of other processes; the [`EventHub`]
//! distributes events to subscribers. A subscriber that reconnects or lags catches up from the
//! store, so that nothing is skipped; one that is too far behind receives a `reset`.
//!
//! Transient events (answer deltas, the start of a compaction) are not stored and have no id.
//!
//! Invariant: a slow subscriber never blocks publishing.

mod frame;
mod hub;
mod sse;
mod subscription;
mod ws;

pub(crate) use frame::EventFrame;
pub(crate) use hub::EventHub;
pub(crate) use sse::{
    KEEP_ALIVE_INTERVAL, event_stream_response, parse_last_event_id, subscription_response,
};
pub(crate) use subscription::{EventFilter, Subscription};
pub(crate) use ws::serve_websocket;
