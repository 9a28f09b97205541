//! Server-sent events of a streamed reply.

use serde_json::Value;

/// One server-sent event.
pub(crate) struct SseFrame {
    /// Its text on the wire.
    pub(crate) text: String,
    /// Whether it carries a delta of the reply.
    pub(crate) is_delta: bool,
}

impl SseFrame {
    /// Creates an event with a name.
    pub(crate) fn named(event: &str, data: &Value) -> Self {
        Self {
            text: format!("event: {event}\ndata: {data}\n\n"),
            is_delta: false,
        }
    }

    /// Creates an event without a name.
    pub(crate) fn unnamed(data: impl std::fmt::Display) -> Self {
        Self {
            text: format!("data: {data}\n\n"),
            is_delta: false,
        }
    }

    /// Marks the event as carrying a delta.
    pub(crate) fn into_delta(self) -> Self {
        Self {
            is_delta: true,
            ..self
        }
    }
}

/// Splits a text into deltas word by word, as a model would stream it.
pub(crate) fn split_deltas(text: &str) -> Vec<&str> {
    text.split_inclusive(' ').collect()
}
