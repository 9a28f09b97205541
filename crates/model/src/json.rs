//! JSON values stored as their original text.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{MAX_JSON_DEPTH, is_nested_deeper_than};

/// A JSON value stored as its text: never reordered or rounded.
///
/// Tool arguments and unknown blocks of other systems pass through unchanged, and
/// reading a log does not parse values that are not used.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Validates that `text` is one JSON value, nested at most [`MAX_JSON_DEPTH`]
    /// levels deep.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        if is_nested_deeper_than(text.as_bytes(), MAX_JSON_DEPTH) {
            let reason = format!("nested deeper than {MAX_JSON_DEPTH} levels");
            return Err(serde::de::Error::custom(reason));
        }
        Self::from_stored(text)
    }

    /// Wraps text that was accepted before, without a depth limit.
    pub(crate) fn from_stored(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// Serializes a value.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Decodes the value into a type.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// The `type` member, if this is an object that has one.
    pub(crate) fn type_tag(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Tagged {
            r#type: String,
        }
        // Serde would accept an array as a struct with its fields in order.
        if !self.as_str().starts_with('{') {
            return None;
        }
        self.decode::<Tagged>().ok().map(|tagged| tagged.r#type)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
