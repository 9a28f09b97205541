//! Items of the OpenAI Conversations API in a file: a list, or an array of items.

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

pub(super) fn read(telling: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = telling.path;
    let Some(whole) = source_document::read_source_text(telling)? else {
        return Ok(());
    };
    let list = if whole.trim_start().starts_with('[') {
        List {
            data: source_document::parse(telling, &whole)?,
            id: None,
            created_at: None,
        }
    } else {
        source_document::parse(telling, &whole)?
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut found = telling.new_session(list.id.unwrap_or_else(|| stem.into_owned()));
    found.at = json_members::parse_time(list.created_at).ok().flatten();
    telling.emit_session(found);
    for (index, raw) in list.data.into_iter().enumerate() {
        let place = index as u64 + 1;
        match parse_item(telling, raw.get()) {
            Ok(item) => telling.emit_message(place, item.id, None, item.message),
            Err(_) if is_json(raw.get()) => telling.emit_foreign(place, None, None, raw.get()),
            Err(wrong) => telling.emit_damaged(place, wrong),
        }
        telling.check_stopped()?;
    }
    Ok(())
}
