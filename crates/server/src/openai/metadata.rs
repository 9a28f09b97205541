//! What callers note about a conversation: a context document that no request has.

use serde::Deserialize;
use serde_json::{Map, Value};
use throughline::{Body, Json, METADATA_DOCUMENT, Read, Record, Session};

use super::Refusal;

/// How many there may be, and how long they may be.
const MOST: usize = 16;
const LONGEST_NAME: usize = 64;
const LONGEST: usize = 512;

/// Names and texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata(Map<String, Value>);

impl Metadata {
    /// What was sent, if it can be kept.
    pub(super) fn given(given: Map<String, Value>) -> Result<Self, Refusal> {
        if given.len() > MOST {
            let why = format!("metadata has at most {MOST} pairs");
            return Err(Refusal::param("metadata", why));
        }
        for (name, value) in &given {
            let text = value.as_str();
            if name.chars().count() > LONGEST_NAME
                || text.is_none_or(|text| text.chars().count() > LONGEST)
            {
                let param = format!("metadata.{name}");
                let why = format!(
                    "names in metadata have at most {LONGEST_NAME} characters, and their values \
                     are texts of at most {LONGEST}"
                );
                return Err(Refusal::param(param, why));
            }
        }
        Ok(Self(given))
    }

    /// What is noted about a session.
    pub(super) async fn of(session: &Session, record: &Record) -> Result<Self, Refusal> {
        let Some(seq) = record.standing.context.get(METADATA_DOCUMENT) else {
            return Ok(Self::default());
        };
        let entry = session.read(Read::between(*seq, *seq, 1)).await?.pop();
        let noted = match entry.map(|entry| entry.body) {
            Some(Body::ContextSet {
                content: Some(content),
                ..
            }) => noted(&content),
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
    pub(super) fn body(&self) -> Body {
        Body::ContextSet {
            document: METADATA_DOCUMENT.to_owned(),
            content: Json::of(&self.0).ok().filter(|_| !self.0.is_empty()),
        }
    }
}

/// What a document says, as names and values. One that was written elsewhere and has none
/// is shown whole, under its own name.
fn noted(document: &Json) -> Map<String, Value> {
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
