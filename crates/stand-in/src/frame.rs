//! One event of a stream.

use serde_json::Value;

/// One server-sent event.
pub(crate) struct Frame {
    /// Its text on the wire.
    pub(crate) text: String,
    /// Whether it carries a piece of the answer.
    pub(crate) is_piece: bool,
}

impl Frame {
    /// An event with a name.
    pub(crate) fn named(event: &str, data: &Value) -> Self {
        Self {
            text: format!("event: {event}\ndata: {data}\n\n"),
            is_piece: false,
        }
    }

    /// An event without one.
    pub(crate) fn bare(data: impl std::fmt::Display) -> Self {
        Self {
            text: format!("data: {data}\n\n"),
            is_piece: false,
        }
    }

    /// The same, with a piece of the answer in it.
    pub(crate) fn piece(self) -> Self {
        Self {
            is_piece: true,
            ..self
        }
    }
}

/// A text in pieces, as a model would send it: word by word.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive(' ').collect()
}
