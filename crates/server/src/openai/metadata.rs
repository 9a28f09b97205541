//! Conversation metadata, stored as a context document that is not part of any request.

use serde::Deserialize;
use serde_json::{Map, Value};
use throughline::{Body, Json, METADATA_DOCUMENT, ReadRange, Record, Session};

use super::OpenAiError;

/// Limits on the number and length of metadata pairs.
const MAX_PAIRS: usize = 16;
const MAX_NAME_LEN: usize = 64;
const MAX_VALUE_LEN: usize = 512;

/// Metadata: names and text values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata(Map<String, Value>);

impl Metadata {
    /// Validates metadata sent by a client.
    pub(super) fn parse(given: Map<String, Value>) -> Result<Self, OpenAiError> {
        if given.len() > MAX_PAIRS {
            let why = format!("metadata may have at most {MAX_PAIRS} pairs");
            return Err(OpenAiError::invalid_param("metadata", why));
        }
        for (name, value) in &given {
            let text = value.as_str();
            if name.chars().count() > MAX_NAME_LEN
                || text.is_none_or(|text| text.chars().count() > MAX_VALUE_LEN)
            {
                let param = format!("metadata.{name}");
                let why = format!(
                    "metadata names may have at most {MAX_NAME_LEN} characters; values must be \
                     strings of at most {MAX_VALUE_LEN}"
                );
                return Err(OpenAiError::invalid_param(param, why));
            }
        }
        Ok(Self(given))
    }

    /// Loads the metadata of a session.
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

    /// The entry that stores the metadata.
    pub(super) fn to_entry_body(&self) -> Body {
        Body::ContextSet {
            document: METADATA_DOCUMENT.to_owned(),
            content: Json::of(&self.0).ok().filter(|_| !self.0.is_empty()),
        }
    }
}

/// Decodes the document as names and values. A document in another form is returned whole, under
/// its own name.
fn decode_document(document: &Json) -> Map<String, Value> {
    document.decode().unwrap_or_else(|_| {
        let whole = document
            .decode::<String>()
            .unwrap_or_else(|_| document.as_str().to_owned());
        Map::from_iter([(METADATA_DOCUMENT.to_owned(), Value::String(whole))])
    })
}

/// Deserializes a field that may be absent or null, which equals empty.
pub(super) fn or_empty<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
