//! What callers note about a conversation: a context document that no request has.

use serde::Deserialize;
use serde_json::{Map, Value};
use throughline::{Body, Json, METADATA_DOCUMENT, ReadRange, Record, Session};

use super::OpenAiError;

/// How many there may be, and how long they may be.
const MAX_PAIRS: usize = 16;
const MAX_NAME_LEN: usize = 64;
const MAX_VALUE_LEN: usize = 512;

/// Names and texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata(Map<String, Value>);

impl Metadata {
    /// What was sent, if it can be kept.
    pub(super) fn parse(given: Map<String, Value>) -> Result<Self, OpenAiError> {
        if given.len() > MAX_PAIRS {
            let why = format!("metadata has at most {MAX_PAIRS} pairs");
            return Err(OpenAiError::invalid_param("metadata", why));
        }
        for (name, value) in &given {
            let text = value.as_str();
            if name.chars().count() > MAX_NAME_LEN
                || text.is_none_or(|text| text.chars().count() > MAX_VALUE_LEN)
            {
                let param = format!("metadata.{name}");
                let why = format!(
                    "names in metadata have at most {MAX_NAME_LEN} characters, and their values \
                     are texts of at most {MAX_VALUE_LEN}"
                );
                return Err(OpenAiError::invalid_param(param, why));
            }
        }
        Ok(Self(given))
    }

    /// What is noted about a session.
    pub(super) async fn load(session: &Session, record: &Record) -> Result<Self, OpenAiError> {
        let Some(seq) = record.state.context.get(METADATA_DOCUMENT) else {
            return Ok(Self::default());
        };
        let entry = session.read(ReadRange::between(*seq, *seq, 1)).await?.pop();
        let noted = match entry.map(|entry| entry.body) {
            Some(Body::ContextSet {
                content: Some(content),
                ..
            }) => decode_document(&content),
            _ => Map::new(),
        };
        Ok(Self(noted))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The entry that notes it.
    pub(super) fn to_entry_body(&self) -> Body {
        Body::ContextSet {
            document: METADATA_DOCUMENT.to_owned(),
            content: Json::of(&self.0).ok().filter(|_| !self.0.is_empty()),
        }
    }
}

/// What a document says, as names and values. One that was written elsewhere and has none
/// is shown whole, under its own name.
fn decode_document(document: &Json) -> Map<String, Value> {
    document.decode().unwrap_or_else(|_| {
        let whole = document
            .decode::<String>()
            .unwrap_or_else(|_| document.as_str().to_owned());
        Map::from_iter([(METADATA_DOCUMENT.to_owned(), Value::String(whole))])
    })
}

/// A member that may be absent or null, which is the same as empty.
pub(super) fn or_empty<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
