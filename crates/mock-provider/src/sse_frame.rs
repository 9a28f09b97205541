//! One event of a stream.

use serde_json::Value;

/// One server-sent event.
pub(crate) struct SseFrame {
    /// Its text on the wire.
    pub(crate) text: String,
    /// Whether it carries a piece of the answer.
    pub(crate) is_delta: bool,
}

impl SseFrame {
    /// An event with a name.
    pub(crate) fn named(event: &str, data: &Value) -> Self {
        Self {
            text: format!("event: {event}\ndata: {data}\n\n"),
            is_delta: false,
        }
    }

    /// An event without one.
    pub(crate) fn unnamed(data: impl std::fmt::Display) -> Self {
        Self {
            text: format!("data: {data}\n\n"),
            is_delta: false,
        }
    }

    /// The same, with a piece of the answer in it.
    pub(crate) fn into_delta(self) -> Self {
        Self {
            is_delta: true,
            ..self
        }
    }
}

/// A text in pieces, as a model would send it: word by word.
pub(crate) fn split_deltas(text: &str) -> Vec<&str> {
    text.split_inclusive(' ').collect()
}
