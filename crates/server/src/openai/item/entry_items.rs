//! Converts an entry to the items it is shown as.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use throughline::{
    Block, Body, Content, Entry, EntryId, Json, Message, Role, SessionId, Throughline, ToolCall,
    ToolResult,
};

use super::content_part::{Blobs, block_to_part, load_blobs};
use super::extra_fields::ExtraFields;
use crate::openai::{OpenAiError, id};

/// An item of a conversation.
#[derive(Clone, Debug)]
pub(in crate::openai) struct Item {
    /// Item id.
    pub(in crate::openai) id: String,
    /// The complete item.
    pub(in crate::openai) json: Json,
    /// The blocks it is made of, as a message content.
    pub(in crate::openai) blocks: Content,
}

/// Returns the items of an entry; none if it has no content.
pub(in crate::openai) async fn items_of_entry(
    tl: &Throughline,
    session: &SessionId,
    entry: &Entry,
) -> Result<Vec<Item>, OpenAiError> {
    let messages = match &entry.body {
        Body::Message(message) => vec![message.clone()],
        Body::Restored(restored) => {
            let prompt = Message::text(Role::User, restored.prompt.clone());
            let answer = restored.acknowledgement.clone();
            let answer = answer.map(|answer| Message::text(Role::Assistant, answer));
            [prompt].into_iter().chain(answer).collect()
        }
        Body::Merged(merge) => {
            let summary = merge.summary.clone();
            let summary = summary.map(|summary| Message::text(Role::User, summary));
            summary.into_iter().collect()
        }
        _ => Vec::new(),
    };
    let mut maker = ItemBuilder::new(&entry.id);
    for message in &messages {
        let blobs = load_blobs(tl, &message.content).await?;
        maker.add_message(message, &blobs);
    }
    let mut items = maker.items;
    // An entry that was added as an item keeps that item's id.
    if let (Some(own), [only]) = (&entry.external_id, items.as_mut_slice())
        && entry.id == EntryId::from_external(session, own)
        && id::is_storable(own)
    {
        only.set_id(own);
    }
    Ok(items)
}

/// Returns the items of a message.
pub(super) fn items_of_message(message: &Message, entry: &EntryId, blobs: &Blobs) -> Vec<Item> {
    let mut maker = ItemBuilder::new(entry);
    maker.add_message(message, blobs);
    maker.items
}

impl Item {
    /// Replaces the id, unless the item is stored verbatim.
    fn set_id(&mut self, own: &str) {
        let Ok(mut members) = self.json.decode::<Map<String, Value>>() else {
            return;
        };
        if members.get("id").and_then(Value::as_str) == Some(self.id.as_str()) && self.id != own {
            members.insert("id".to_owned(), json!(own));
            if let Ok(json) = Json::of(&members) {
                own.clone_into(&mut self.id);
                self.json = json;
            }
        }
    }
}

/// Builds items from blocks.
struct ItemBuilder<'a> {
    entry: &'a EntryId,
    items: Vec<Item>,
    /// Number of items per id prefix so far.
    counts: HashMap<String, usize>,
}

impl<'a> ItemBuilder<'a> {
    fn new(entry: &'a EntryId) -> Self {
        Self {
            entry,
            items: Vec::new(),
            counts: HashMap::new(),
        }
    }

    fn add_message(&mut self, message: &Message, blobs: &Blobs) {
        let status = if message.incomplete {
            "incomplete"
        } else {
            "completed"
        };
        let mut run: Vec<&Block> = Vec::new();
        let mut parts = Vec::new();
        let is_answer = message.role == Role::Assistant;
        let blocks = &message.content.0;
        let rest = blocks.last().and_then(|last| match last {
            Block::Foreign(raw) => ExtraFields::from_block(raw),
            _ => None,
        });
        let content_blocks = &blocks[..blocks.len() - usize::from(rest.is_some())];
        let mut rest = rest;
        for block in content_blocks {
            if let Some(part) = block_to_part(block, is_answer, blobs) {
                parts.push(part);
                run.push(block);
                continue;
            }
            self.flush_parts(message.role, status, &mut parts, &mut run, &mut rest);
            let item = match block {
                Block::Thinking { text, signature } => {
                    reasoning_item(text, signature.as_deref(), status)
                }
                Block::ToolCall(call) => function_call_item(call),
                Block::ToolResult(result) => function_call_output_item(result, blobs),
                Block::Foreign(raw) => {
                    self.push_verbatim(raw, block);
                    continue;
                }
                _ => continue,
            };
            self.push(item, vec![block.clone()], &mut rest);
        }
        // An empty message is still a message.
        if content_blocks.is_empty() || !parts.is_empty() {
            self.flush_parts(message.role, status, &mut parts, &mut run, &mut rest);
            if content_blocks.is_empty() {
                let item = message_item(message.role, status, &[]);
                self.push(item, Vec::new(), &mut rest);
            }
        }
    }

    /// Turns the collected parts into one message.
    fn flush_parts(
        &mut self,
        role: Role,
        status: &str,
        parts: &mut Vec<Value>,
        run: &mut Vec<&Block>,
        rest: &mut Option<ExtraFields>,
    ) {
        if parts.is_empty() {
            return;
        }
        let item = message_item(role, status, &std::mem::take(parts));
        let blocks = run.drain(..).cloned().collect();
        self.push(item, blocks, rest);
    }

    fn next_id(&mut self, kind: &str) -> String {
        let prefix = id::prefix(kind);
        let count = self.counts.entry(prefix.to_owned()).or_default();
        let nth = *count;
        *count += 1;
        id::item(prefix, self.entry, nth)
    }

    fn push(&mut self, item: Value, blocks: Vec<Block>, rest: &mut Option<ExtraFields>) {
        let Value::Object(made) = item else {
            return;
        };
        let kind = made.get("type").and_then(Value::as_str).unwrap_or_default();
        let id = self.next_id(kind);
        let mut members = Map::new();
        members.insert("id".to_owned(), json!(id));
        members.extend(made);
        let mut content = Content(blocks);
        if let Some(rest) = rest.take() {
            content.0.extend(rest.to_block());
            rest.apply_to(&mut members);
        }
        if let Ok(json) = Json::of(&members) {
            self.items.push(Item {
                id,
                json,
                blocks: content,
            });
        }
    }

    /// Adds an item of an unknown type verbatim, with an id if it had none.
    fn push_verbatim(&mut self, raw: &Json, block: &Block) {
        let mut json = unwrap_foreign(raw).unwrap_or_else(|| raw.clone());
        let Ok(members) = json.decode::<Members<'_>>() else {
            return;
        };
        let id = match text_member(&members, "id") {
            Some(id) => id,
            None => {
                let kind = text_member(&members, "type").unwrap_or_default();
                let id = self.next_id(&kind);
                let Some(with_id) = with_id(&json, members, &id) else {
                    return;
                };
                json = with_id;
                id
            }
        };
        let blocks = Content(vec![block.clone()]);
        self.items.push(Item { id, json, blocks });
    }
}

/// The members of a JSON object, as written.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Returns a text member.
fn text_member(members: &Members<'_>, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// Unwraps an item from a foreign block, if it had to be wrapped to be stored. A value without a
/// type is not an item and stays wrapped.
fn unwrap_foreign(raw: &Json) -> Option<Json> {
    let members: Members<'_> = raw.decode().ok()?;
    let data = members.get("data")?;
    let inner: Members<'_> = serde_json::from_str(data.get()).ok()?;
    let is_item =
        text_member(&members, "type")? == "foreign" && text_member(&inner, "type").is_some();
    is_item.then(|| Json::of(data).ok()).flatten()
}

/// Returns the item with our id, replacing one that is not text.
fn with_id(item: &Json, mut members: Members<'_>, id: &str) -> Option<Json> {
    if members.remove("id").is_some() {
        let mut with_id = BTreeMap::from([("id".to_owned(), Json::of(id).ok()?)]);
        for (name, value) in members {
            with_id.insert(name, Json::of(value).ok()?);
        }
        return Json::of(&with_id).ok();
    }
    // Verbatim, except for the id at the front.
    let rest = item.as_str().trim_start().trim_start_matches('{');
    let comma = if members.is_empty() { "" } else { "," };
    serde_json::from_str(&format!("{{\"id\":\"{id}\"{comma}{rest}")).ok()
}

fn message_item(role: Role, status: &str, parts: &[Value]) -> Value {
    json!({
        "type": "message",
        "role": role.as_str(),
        "status": status,
        "content": parts,
    })
}

fn reasoning_item(text: &str, signature: Option<&str>, status: &str) -> Value {
    let summary = match text {
        "" => json!([]),
        text => json!([{"type": "summary_text", "text": text}]),
    };
    let mut item = json!({"type": "reasoning", "summary": summary, "status": status});
    if let Some(signature) = signature {
        item["encrypted_content"] = json!(signature);
    }
    item
}

fn function_call_item(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.input.as_str(),
        "status": "completed",
    })
}

fn function_call_output_item(result: &ToolResult, blobs: &Blobs) -> Value {
    let output = match result.content.0.as_slice() {
        [] => json!(""),
        [Block::Text(text)] => json!(text),
        blocks => blocks
            .iter()
            .filter_map(|block| block_to_part(block, false, blobs))
            .collect(),
    };
    json!({
        "type": "function_call_output",
        "call_id": result.call_id,
        "output": output,
        "status": "completed",
    })
}
