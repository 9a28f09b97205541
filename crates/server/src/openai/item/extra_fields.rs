//! Fields of an item that have no equivalent in our blocks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline::{Block, Json};

/// Members that are missing from, or different in, the item built from the blocks.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ExtraFields {
    r#type: TypeTag,
    /// Members of the item itself.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    members: Map<String, Value>,
    /// Members of its parts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Map<String, Value>>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
enum TypeTag {
    #[default]
    #[serde(rename = "openai_item")]
    Item,
}

/// The member that holds an item's parts.
fn parts_member(item: &Map<String, Value>) -> Option<&'static str> {
    match item.get("type").and_then(Value::as_str) {
        Some("message") => Some("content"),
        Some("function_call_output") => Some("output"),
        _ => None,
    }
}

/// The member that holds a file's bytes, by the part's type.
pub(super) fn file_member(part: &Map<String, Value>) -> Option<&'static str> {
    match part.get("type").and_then(Value::as_str) {
        Some("input_image") => Some("image_url"),
        Some("input_file") => Some("file_data"),
        _ => None,
    }
}

/// Converts between image and file parts to match the given type: an image may be sent as a file,
/// while its block is shown as an image.
fn convert_file(made: &mut Map<String, Value>, given: &Map<String, Value>) {
    if let (Some(from), Some(to)) = (file_member(made), file_member(given))
        && from != to
    {
        let bytes = made.get(from).cloned();
        made.retain(|name, _| name != from && name != "detail");
        made.extend(bytes.map(|bytes| (to.to_owned(), bytes)));
    }
}

/// Members of one object that the other lacks or has with another value. Null equals absent.
fn extra_members(given: &Map<String, Value>, made: &Map<String, Value>) -> Map<String, Value> {
    let differs =
        |(name, value): &(&String, &Value)| !value.is_null() && made.get(*name) != Some(*value);
    let members = given.iter().filter(differs);
    members
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

impl ExtraFields {
    /// Computes the members of a given item that are missing from the item built from its blocks.
    pub(super) fn difference<'a>(
        given: &'a Map<String, Value>,
        made: &'a Map<String, Value>,
    ) -> Self {
        let mut rest = Self {
            members: extra_members(given, made),
            ..Self::default()
        };
        // The server chooses the id of an item, but not the `id` of a part.
        rest.members.retain(|member, _| member != "id");
        let listed = |item: &'a Map<String, Value>, name| item.get(name)?.as_array();
        if let Some(name) = parts_member(made)
            && let (Some(given), Some(made)) = (listed(given, name), listed(made, name))
            && given.len() == made.len()
        {
            let pairs = given.iter().zip(made);
            rest.parts = pairs
                .map(|pair| match pair {
                    (Value::Object(given), Value::Object(made)) => {
                        let mut made = made.clone();
                        convert_file(&mut made, given);
                        extra_members(given, &made)
                    }
                    _ => Map::new(),
                })
                .collect();
            // Not `remove`, which moves the last member to the removed one's position.
            rest.members.retain(|member, _| member != name);
            if rest.parts.iter().all(Map::is_empty) {
                rest.parts.clear();
            }
        }
        rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.parts.is_empty()
    }

    /// Merges the fields into the item built from the blocks.
    pub(super) fn apply_to(self, item: &mut Map<String, Value>) {
        if let Some(parts) = parts_member(item).and_then(|name| item.get_mut(name))
            && let Some(parts) = parts.as_array_mut()
        {
            for (part, more) in parts.iter_mut().zip(self.parts) {
                if let Value::Object(part) = part {
                    convert_file(part, &more);
                    part.extend(more);
                }
            }
        }
        item.extend(self.members);
    }

    /// Encodes the fields as a block, to follow the blocks they belong to.
    pub(super) fn to_block(&self) -> Result<Block, serde_json::Error> {
        Json::of(self).map(Block::Foreign)
    }

    /// Decodes a foreign block, if it holds extra fields.
    pub(super) fn from_block(raw: &Json) -> Option<Self> {
        // Cheap check first: most foreign blocks are something else and may be large.
        raw.as_str()
            .starts_with(r#"{"type":"openai_item""#)
            .then(|| raw.decode().ok())
            .flatten()
    }
}
