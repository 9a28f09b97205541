//! Items of the OpenAI Conversations API in a file: a list, or an array of items.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::is_json;
use super::item::item;
use super::telling::Telling;
use super::{ReadError, document};
use crate::members;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow, alias = "items")]
    data: Vec<&'a RawValue>,
    #[serde(alias = "conversation_id")]
    id: Option<String>,
    #[serde(borrow)]
    created_at: Option<&'a RawValue>,
}

pub(super) fn read(telling: &mut Telling<'_>) -> Result<(), ReadError> {
    let path = telling.path;
    let Some(whole) = document::whole(telling)? else {
        return Ok(());
    };
    let list = if whole.trim_start().starts_with('[') {
        List {
            data: document::parsed(telling, &whole)?,
            id: None,
            created_at: None,
        }
    } else {
        document::parsed(telling, &whole)?
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut found = telling.found(list.id.unwrap_or_else(|| stem.into_owned()));
    found.at = members::time(list.created_at).ok().flatten();
    telling.session(found);
    for (index, raw) in list.data.into_iter().enumerate() {
        let place = index as u64 + 1;
        match item(telling, raw.get()) {
            Ok(item) => telling.message(place, item.id, None, item.message),
            Err(_) if is_json(raw.get()) => telling.foreign(place, None, None, raw.get()),
            Err(wrong) => telling.damaged(place, wrong),
        }
        telling.go_on()?;
    }
    Ok(())
}
