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

pub(crate) use frame::Frame;
pub(crate) use hub::Hub;
pub(crate) use sse::{BREATH, event_stream, resumed_from, stream};
pub(crate) use subscription::{Subscription, Wanted};
pub(crate) use ws::speak;
