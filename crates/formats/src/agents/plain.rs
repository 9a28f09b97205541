//! A JSON document of messages with `role` and `content`: an array, or one in `messages`.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Identity, Incoming, IncomingEntry};

use super::telling::Telling;
use super::{ReadError, document};
use crate::parse_message;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    id: Option<String>,
    #[serde(alias = "name")]
    title: Option<String>,
}

pub(super) fn read(telling: &mut Telling<'_>) -> Result<(), ReadError> {
    let path = telling.path;
    let Some(whole) = document::whole(telling)? else {
        return Ok(());
    };
    let document = if whole.trim_start().starts_with('[') {
        Document {
            messages: document::parsed(telling, &whole)?,
            id: None,
            title: None,
        }
    } else {
        document::parsed(telling, &whole)?
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let found = telling.found(document.id.unwrap_or_else(|| stem.into_owned()));
    telling.session(found);
    if let Some(title) = &document.title {
        telling.titled(0, "title", None, title, true);
    }
    tell_all(telling, &document.messages)
}

/// Tells messages of an array, each known by its id or its place; times and figures may
/// stand under other systems' names.
pub(super) fn tell_all(telling: &mut Telling<'_>, messages: &[&RawValue]) -> Result<(), ReadError> {
    #[derive(Deserialize)]
    struct Timed<'a> {
        #[serde(borrow, alias = "created_at", alias = "createdAt", alias = "date")]
        timestamp: Option<&'a RawValue>,
        metadata: Option<Metadata<'a>>,
    }
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow, alias = "usage")]
        tokens: Option<&'a RawValue>,
        model: Option<String>,
    }
    for (index, raw) in messages.iter().enumerate() {
        let place = index as u64 + 1;
        let timed: Option<Timed<'_>> = super::content::any(Some(raw));
        match parse_message(raw.get()) {
            Ok(mut line) => {
                let (mut at, mut tokens) = (line.at, None);
                if let Some(timed) = timed {
                    at = at.or(crate::members::time(timed.timestamp).ok().flatten());
                    tokens = timed.metadata;
                }
                if let Some(metadata) = tokens {
                    let usage = crate::members::usage(metadata.tokens).ok().flatten();
                    line.message.usage = line.message.usage.or(usage);
                    line.message.model = line.message.model.or(metadata.model);
                }
                let identity = match line.external_id {
                    Some(own) => Identity::Own(own),
                    None => Identity::Place(place.to_string()),
                };
                let entry = IncomingEntry::message(place, None, at, line.message);
                telling.tell(Incoming::Entry(Box::new(IncomingEntry {
                    identity,
                    author: line.author,
                    ..entry
                })));
            }
            Err(error) => telling.damaged(place, error.to_string()),
        }
        telling.go_on()?;
    }
    Ok(())
}
