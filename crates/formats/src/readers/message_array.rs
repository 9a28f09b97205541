//! Reads a JSON document of messages with `role` and `content`: an array, or an object with
//! `messages`.

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

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = emitter.path;
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let document = if whole.trim_start().starts_with('[') {
        Document {
            messages: source_document::parse(emitter, &whole)?,
            id: None,
            title: None,
        }
    } else {
        source_document::parse(emitter, &whole)?
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let found = emitter.new_session(document.id.unwrap_or_else(|| stem.into_owned()));
    emitter.emit_session(found);
    if let Some(title) = &document.title {
        emitter.emit_title(0, "title", None, title, true);
    }
    emit_messages(emitter, &document.messages)
}

/// Emits the messages of an array, each identified by its id or its position. Times and
/// figures may have other systems' names.
pub(super) fn emit_messages(
    emitter: &mut Emitter<'_>,
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
                emitter.emit(IncomingItem::Entry(Box::new(IncomingEntry {
                    identity,
                    author: line.author,
                    ..entry
                })));
            }
            Err(error) => emitter.emit_damaged(place, error.to_string()),
        }
        emitter.check_stopped()?;
    }
    Ok(())
}
