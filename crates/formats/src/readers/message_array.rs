//! A JSON document of messages with `role` and `content`: an array, or one in `messages`.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{EntryIdentity, IncomingEntry, IncomingItem};

use super::emitter::Emitter;
use super::{ReadError, source_document};
use crate::parse_message;

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    id: Option<String>,
    #[serde(alias = "name")]
    title: Option<String>,
}

pub(super) fn read(telling: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = telling.path;
    let Some(whole) = source_document::read_source_text(telling)? else {
        return Ok(());
    };
    let document = if whole.trim_start().starts_with('[') {
        Document {
            messages: source_document::parse(telling, &whole)?,
            id: None,
            title: None,
        }
    } else {
        source_document::parse(telling, &whole)?
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let found = telling.new_session(document.id.unwrap_or_else(|| stem.into_owned()));
    telling.emit_session(found);
    if let Some(title) = &document.title {
        telling.emit_title(0, "title", None, title, true);
    }
    emit_messages(telling, &document.messages)
}

/// Tells messages of an array, each known by its id or its place; times and figures may
/// stand under other systems' names.
pub(super) fn emit_messages(
    telling: &mut Emitter<'_>,
    messages: &[&RawValue],
) -> Result<(), ReadError> {
    #[derive(Deserialize)]
    struct MessageExtras<'a> {
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
        let timed: Option<MessageExtras<'_>> = super::message_content::decode(Some(raw));
        match parse_message(raw.get()) {
            Ok(mut line) => {
                let (mut at, mut tokens) = (line.at, None);
                if let Some(timed) = timed {
                    at = at.or(crate::json_members::parse_time(timed.timestamp)
                        .ok()
                        .flatten());
                    tokens = timed.metadata;
                }
                if let Some(metadata) = tokens {
                    let usage = crate::json_members::parse_usage(metadata.tokens)
                        .ok()
                        .flatten();
                    line.message.usage = line.message.usage.or(usage);
                    line.message.model = line.message.model.or(metadata.model);
                }
                let identity = match line.external_id {
                    Some(own) => EntryIdentity::External(own),
                    None => EntryIdentity::Position(place.to_string()),
                };
                let entry = IncomingEntry::message(place, None, at, line.message);
                telling.emit(IncomingItem::Entry(Box::new(IncomingEntry {
                    identity,
                    author: line.author,
                    ..entry
                })));
            }
            Err(error) => telling.emit_damaged(place, error.to_string()),
        }
        telling.check_stopped()?;
    }
    Ok(())
}
