//! What happens, as it happens.
//!
//! Every change in the store is an event, and its position in the feed is the event's
//! id. One task reads the feed, woken by what is appended here and looking now and then
//! for what others append; the [`Hub`] hands events to whoever subscribed. A reader that
//! comes back, or cannot keep up, reads on from the store, so that nothing is skipped;
//! one too far behind for that is told so.
//!
//! What passes and is not kept (pieces of an answer, a compaction's start) has no id.
//!
//! Invariant: nobody waits for a reader.

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
