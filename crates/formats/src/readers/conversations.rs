//! Reads items of the OpenAI Conversations API from a file: a list object or an array.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::emitter::Emitter;
use super::message_content::is_json;
use super::openai_item::parse_item;
use super::{ReadError, source_document};
use crate::json_members;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, alias = "items")]
    data: Vec<&'a RawValue>,
    #[serde(alias = "conversation_id")]
    id: Option<String>,
    #[serde(borrow)]
    created_at: Option<&'a RawValue>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = emitter.path;
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let list = if whole.trim_start().starts_with('[') {
        List {
            data: source_document::parse(emitter, &whole)?,
            id: None,
            created_at: None,
        }
    } else {
        source_document::parse(emitter, &whole)?
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut found = emitter.new_session(list.id.unwrap_or_else(|| stem.into_owned()));
    found.at = json_members::parse_time(list.created_at).ok().flatten();
    emitter.emit_session(found);
    for (index, raw) in list.data.into_iter().enumerate() {
        let place = index as u64 + 1;
        match parse_item(emitter, raw.get()) {
            Ok(item) => emitter.emit_message(place, item.id, None, item.message),
            Err(_) if is_json(raw.get()) => emitter.emit_foreign(place, None, None, raw.get()),
            Err(wrong) => emitter.emit_damaged(place, wrong),
        }
        emitter.check_stopped()?;
    }
    Ok(())
}
