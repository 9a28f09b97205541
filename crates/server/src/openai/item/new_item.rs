//! Parses an item sent by a caller and converts it to an entry.

use serde::Deserialize;
use serde_json::{Map, Value};
use throughline::{
    Block, Content, EntryId, Json, Message, NewEntry, Role, Session, Throughline, ToolCall,
    ToolResult,
};

use super::content_part::{Blobs, part_to_block};
use super::entry_items::items_of_message;
use super::extra_fields::{ExtraFields, file_member};
use crate::openai::{OpenAiError, id};

/// A parsed item.
#[derive(Clone, Debug)]
pub(in crate::openai) struct NewItem {
    /// The message.
    message: Message,
    /// The item's id, if it came with one that can be stored.
    id: Option<String>,
    /// The bytes of its files.
    files: Vec<Vec<u8>>,
}

/// Parses an item; `param` is its location in the request, for error messages.
pub(in crate::openai) fn parse_item(raw: &Json, param: &str) -> Result<NewItem, OpenAiError> {
    let wrong = |name: &str, why: &str| OpenAiError::invalid_param(format!("{param}{name}"), why);
    let head: ItemHeader = raw
        .decode()
        .ok()
        .filter(|_| raw.as_str().starts_with('{'))
        .ok_or_else(|| wrong("", "an item must be an object"))?;
    let text = |json: &Json| json.decode::<String>().ok();
    let id = match &head.id {
        Some(json) => Some(text(json).ok_or_else(|| wrong(".id", "`id` must be a string"))?),
        None => None,
    };
    let id = id.filter(|id| id::is_storable(id));
    let mut files = Vec::new();
    let kind = match (head.r#type.as_ref().map(text), &head.role) {
        (Some(Some(kind)), _) => kind,
        (None, Some(_)) => "message".to_owned(),
        _ => {
            let why = "an item must have a `type`, or a `role` and `content`";
            return Err(wrong(".type", why));
        }
    };
    let known = [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
    ];
    if kind == "item_reference" {
        let why = "a reference names an item that is already in the conversation";
        return Err(wrong(".type", why));
    }
    if !known.contains(&kind.as_str()) {
        let message = verbatim_message(&kind, raw);
        return Ok(NewItem { message, id, files });
    }
    let members = raw.decode();
    let members = members.map_err(|_| wrong("", "this item has a number that is out of range"))?;
    let item = ItemFields { members, param };
    let message = match kind.as_str() {
        "message" => item.to_message(&mut files)?,
        "function_call" => item.to_tool_call()?,
        "function_call_output" => item.to_tool_result(&mut files)?,
        _ => item.to_reasoning()?,
    };
    let message = item.with_extra_fields(message)?;
    Ok(NewItem { message, id, files })
}

/// The members that determine an item's type.
#[derive(Deserialize)]
struct ItemHeader {
    id: Option<Json>,
    r#type: Option<Json>,
    role: Option<Json>,
}

/// Wraps an item of an unknown type verbatim.
fn verbatim_message(kind: &str, raw: &Json) -> Message {
    let role = match kind {
        kind if kind.ends_with("_output") || kind.ends_with("_response") => Role::Tool,
        _ => Role::Assistant,
    };
    // These types would be confused with our own wrappers.
    let block = if ["foreign", "openai_item", "openai_part"].contains(&kind) {
        Block::wrap_foreign(raw)
    } else {
        Block::from_foreign(raw.clone())
    };
    Message::new(role, Content(vec![block]))
}

/// The members of an item, and its location in the request.
struct ItemFields<'a> {
    members: Map<String, Value>,
    param: &'a str,
}

impl ItemFields<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    fn invalid_field(&self, name: &str, why: &str) -> OpenAiError {
        OpenAiError::invalid_param(format!("{}.{name}", self.param), why)
    }

    fn required_text(&self, name: &str) -> Result<&str, OpenAiError> {
        let missing = || self.invalid_field(name, &format!("this item needs a string `{name}`"));
        self.text(name).ok_or_else(missing)
    }

    fn to_message(&self, files: &mut Vec<Vec<u8>>) -> Result<Message, OpenAiError> {
        let role = match self.required_text("role")? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "developer" => Role::System,
            "tool" => Role::Tool,
            _ => {
                let why = "role must be user, assistant, system, developer or tool";
                return Err(self.invalid_field("role", why));
            }
        };
        let content = self.parse_parts("content", files)?;
        let incomplete = self.text("status") == Some("incomplete");
        Ok(Message {
            incomplete,
            ..Message::new(role, content)
        })
    }

    /// Parses a member that is text or an array of parts.
    fn parse_parts(&self, name: &str, files: &mut Vec<Vec<u8>>) -> Result<Content, OpenAiError> {
        match self.members.get(name) {
            Some(Value::String(text)) => Ok(Content::text(text)),
            Some(Value::Array(parts)) => {
                let blocks = parts.iter().enumerate().map(|(at, part)| {
                    part_to_block(part, files).ok_or_else(|| {
                        let name = format!("{name}[{at}]");
                        self.invalid_field(
                            &name,
                            "a part must have a `type` and that type's fields",
                        )
                    })
                });
                Ok(Content(blocks.collect::<Result<_, _>>()?))
            }
            _ => Err(self.invalid_field(
                name,
                &format!("`{name}` must be a string or an array of parts"),
            )),
        }
    }

    fn to_tool_call(&self) -> Result<Message, OpenAiError> {
        let arguments = self.required_text("arguments")?;
        // Arguments that are not JSON are stored as text; the extra fields record the original
        // form.
        let input = Json::parse(arguments).or_else(|_| Json::of(arguments));
        let call = ToolCall {
            id: self.required_text("call_id")?.to_owned(),
            name: self.required_text("name")?.to_owned(),
            input: input.map_err(|_| self.invalid_field("arguments", "this cannot be stored"))?,
        };
        let content = Content(vec![Block::ToolCall(call)]);
        Ok(Message::new(Role::Assistant, content))
    }

    fn to_tool_result(&self, files: &mut Vec<Vec<u8>>) -> Result<Message, OpenAiError> {
        let result = ToolResult {
            call_id: self.required_text("call_id")?.to_owned(),
            content: self.parse_parts("output", files)?,
            is_error: false,
        };
        let content = Content(vec![Block::ToolResult(result)]);
        Ok(Message::new(Role::Tool, content))
    }

    fn to_reasoning(&self) -> Result<Message, OpenAiError> {
        let summary = match self.members.get("summary") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(_) => {
                return Err(self.invalid_field("summary", "summary must be an array of parts"));
            }
        };
        let texts = summary.iter().filter_map(|part| part["text"].as_str());
        let thought = Block::Thinking {
            text: texts.collect::<Vec<_>>().join("\n\n"),
            signature: self.text("encrypted_content").map(ToOwned::to_owned),
        };
        Ok(Message::new(Role::Assistant, Content(vec![thought])))
    }

    /// Adds the fields that the blocks cannot represent.
    fn with_extra_fields(self, mut message: Message) -> Result<Message, OpenAiError> {
        let items = items_of_message(&message, &EntryId::from_bytes([0; 16]), &Blobs::default());
        let mut given = self.members;
        given
            .entry("type")
            .or_insert_with(|| Value::from("message"));
        // Text is shorthand for one part.
        given.retain(|name, value| name != "content" || !value.is_string());
        // The bytes are not available here, and were already compared.
        strip_file_data(&mut given);
        let rest = items.first().and_then(|item| {
            let mut made: Map<String, Value> = item.json.decode().ok()?;
            strip_file_data(&mut made);
            Some(ExtraFields::difference(&given, &made))
        });
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            let block = rest.to_block();
            let block = block
                .map_err(|_| OpenAiError::invalid_param(self.param, "this cannot be stored"))?;
            message.content.0.push(block);
        }
        Ok(message)
    }
}

fn strip_file_data(item: &mut Map<String, Value>) {
    for name in ["content", "output"] {
        let parts = item.get_mut(name).and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
            let holder = file_member(part);
            part.retain(|name, value| {
                let inline = value.as_str().is_some_and(|url| url.starts_with("data:"));
                !(inline && Some(name.as_str()) == holder)
            });
        }
    }
}

impl NewItem {
    /// The id it came with.
    pub(in crate::openai) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The message.
    pub(in crate::openai) fn message(&self) -> &Message {
        &self.message
    }

    /// The bytes of its files.
    #[cfg(test)]
    pub(super) fn files(&self) -> &[Vec<u8>] {
        &self.files
    }

    /// Stores the bytes of its files.
    pub(in crate::openai) async fn store_files(&self, tl: &Throughline) -> Result<(), OpenAiError> {
        for bytes in &self.files {
            tl.put_blob(bytes.clone()).await?;
        }
        Ok(())
    }

    /// Converts the item to a session entry, with the item's own id if `keep_id`.
    pub(in crate::openai) fn into_entry(self, session: &Session, keep_id: bool) -> NewEntry {
        let mut entry = session.new_entry(self.message);
        if let Some(id) = self.id.filter(|_| keep_id) {
            entry.id = EntryId::from_external(session.id(), &id);
            entry.external_id = Some(id);
        }
        entry
    }
}
