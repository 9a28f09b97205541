//! An item as a caller gives it, and the entry it becomes.

use serde::Deserialize;
use serde_json::{Map, Value};
use throughline::{
    Block, Content, EntryId, Json, Message, NewEntry, Role, Session, Throughline, ToolCall,
    ToolResult,
};

use super::part::{Blobs, block};
use super::rest::{Rest, file_member};
use super::shown::made;
use crate::openai::{Refusal, id};

/// An item that has been understood.
#[derive(Clone, Debug)]
pub(in crate::openai) struct Given {
    /// What it says.
    message: Message,
    /// Its id, where it came with one that can be kept.
    id: Option<String>,
    /// The bytes of its files.
    files: Vec<Vec<u8>>,
}

/// Understands an item; `param` is where in the request it stands.
pub(in crate::openai) fn given(raw: &Json, param: &str) -> Result<Given, Refusal> {
    let wrong = |name: &str, why: &str| Refusal::param(format!("{param}{name}"), why);
    let head: Head = raw
        .decode()
        .ok()
        .filter(|_| raw.as_str().starts_with('{'))
        .ok_or_else(|| wrong("", "an item is an object"))?;
    let text = |json: &Json| json.decode::<String>().ok();
    let id = match &head.id {
        Some(json) => Some(text(json).ok_or_else(|| wrong(".id", "an `id` is a text"))?),
        None => None,
    };
    let id = id.filter(|id| id::can_be_kept(id));
    let mut files = Vec::new();
    let kind = match (head.r#type.as_ref().map(text), &head.role) {
        (Some(Some(kind)), _) => kind,
        (None, Some(_)) => "message".to_owned(),
        _ => {
            let why = "an item has a `type`, or a `role` and `content`";
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
        let why = "a reference names an item of the conversation, which is in it already";
        return Err(wrong(".type", why));
    }
    if !known.contains(&kind.as_str()) {
        let message = verbatim(&kind, raw);
        return Ok(Given { message, id, files });
    }
    let members = raw.decode();
    let members = members.map_err(|_| wrong("", "this item has a number beyond all bounds"))?;
    let item = Fields { members, param };
    let message = match kind.as_str() {
        "message" => item.message(&mut files)?,
        "function_call" => item.call()?,
        "function_call_output" => item.output(&mut files)?,
        _ => item.reasoning()?,
    };
    let message = item.with_rest(message)?;
    Ok(Given { message, id, files })
}

/// What tells an item's type.
#[derive(Deserialize)]
struct Head {
    id: Option<Json>,
    r#type: Option<Json>,
    role: Option<Json>,
}

/// An item of a type we do not know, as it came.
fn verbatim(kind: &str, raw: &Json) -> Message {
    let role = match kind {
        kind if kind.ends_with("_output") || kind.ends_with("_response") => Role::Tool,
        _ => Role::Assistant,
    };
    // These would be taken for what we wrap other things in.
    let block = if ["foreign", "openai_item", "openai_part"].contains(&kind) {
        Block::foreign(raw)
    } else {
        Block::verbatim(raw.clone())
    };
    Message::new(role, Content(vec![block]))
}

/// The members of an item, and where it stands.
struct Fields<'a> {
    members: Map<String, Value>,
    param: &'a str,
}

impl Fields<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.members.get(name).and_then(Value::as_str)
    }

    fn wrong(&self, name: &str, why: &str) -> Refusal {
        Refusal::param(format!("{}.{name}", self.param), why)
    }

    fn need(&self, name: &str) -> Result<&str, Refusal> {
        let missing = || self.wrong(name, &format!("this item needs a text `{name}`"));
        self.text(name).ok_or_else(missing)
    }

    fn message(&self, files: &mut Vec<Vec<u8>>) -> Result<Message, Refusal> {
        let role = match self.need("role")? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "developer" => Role::System,
            "tool" => Role::Tool,
            _ => {
                let why = "a role is user, assistant, system, developer or tool";
                return Err(self.wrong("role", why));
            }
        };
        let content = self.parts("content", files)?;
        let incomplete = self.text("status") == Some("incomplete");
        Ok(Message {
            incomplete,
            ..Message::new(role, content)
        })
    }

    /// A text, or parts.
    fn parts(&self, name: &str, files: &mut Vec<Vec<u8>>) -> Result<Content, Refusal> {
        match self.members.get(name) {
            Some(Value::String(text)) => Ok(Content::text(text)),
            Some(Value::Array(parts)) => {
                let blocks = parts.iter().enumerate().map(|(at, part)| {
                    block(part, files).ok_or_else(|| {
                        let name = format!("{name}[{at}]");
                        self.wrong(&name, "a part has a `type` and what that type needs")
                    })
                });
                Ok(Content(blocks.collect::<Result<_, _>>()?))
            }
            _ => Err(self.wrong(name, &format!("`{name}` is a text or an array of parts"))),
        }
    }

    fn call(&self) -> Result<Message, Refusal> {
        let arguments = self.need("arguments")?;
        // What is no JSON is kept as a text; the rest says how it was written.
        let input = Json::parse(arguments).or_else(|_| Json::of(arguments));
        let call = ToolCall {
            id: self.need("call_id")?.to_owned(),
            name: self.need("name")?.to_owned(),
            input: input.map_err(|_| self.wrong("arguments", "this cannot be kept"))?,
        };
        let content = Content(vec![Block::ToolCall(call)]);
        Ok(Message::new(Role::Assistant, content))
    }

    fn output(&self, files: &mut Vec<Vec<u8>>) -> Result<Message, Refusal> {
        let result = ToolResult {
            call_id: self.need("call_id")?.to_owned(),
            content: self.parts("output", files)?,
            is_error: false,
        };
        let content = Content(vec![Block::ToolResult(result)]);
        Ok(Message::new(Role::Tool, content))
    }

    fn reasoning(&self) -> Result<Message, Refusal> {
        let summary = match self.members.get("summary") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(_) => return Err(self.wrong("summary", "a summary is an array of parts")),
        };
        let texts = summary.iter().filter_map(|part| part["text"].as_str());
        let thought = Block::Thinking {
            text: texts.collect::<Vec<_>>().join("\n\n"),
            signature: self.text("encrypted_content").map(ToOwned::to_owned),
        };
        Ok(Message::new(Role::Assistant, Content(vec![thought])))
    }

    /// Adds what the blocks do not say.
    fn with_rest(self, mut message: Message) -> Result<Message, Refusal> {
        let items = made(&message, &EntryId::from_bytes([0; 16]), &Blobs::default());
        let mut given = self.members;
        given
            .entry("type")
            .or_insert_with(|| Value::from("message"));
        // A text alone is short for one part.
        given.retain(|name, value| name != "content" || !value.is_string());
        // The bytes are not at hand here, and are the same by what was checked.
        forget_files(&mut given);
        let rest = items.first().and_then(|item| {
            let mut made: Map<String, Value> = item.json.decode().ok()?;
            forget_files(&mut made);
            Some(Rest::of(&given, &made))
        });
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            let block = rest.block();
            let block = block.map_err(|_| Refusal::param(self.param, "this cannot be kept"))?;
            message.content.0.push(block);
        }
        Ok(message)
    }
}

fn forget_files(item: &mut Map<String, Value>) {
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

impl Given {
    /// The id it came with.
    pub(in crate::openai) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// What it says.
    pub(in crate::openai) fn message(&self) -> &Message {
        &self.message
    }

    /// The bytes of its files.
    #[cfg(test)]
    pub(super) fn files(&self) -> &[Vec<u8>] {
        &self.files
    }

    /// Keeps the bytes of its files.
    pub(in crate::openai) async fn keep_files(&self, tl: &Throughline) -> Result<(), Refusal> {
        for bytes in &self.files {
            tl.put_blob(bytes.clone()).await?;
        }
        Ok(())
    }

    /// The entry that it becomes in a session, under its own id where it keeps it.
    pub(in crate::openai) fn entry(self, session: &Session, keep_id: bool) -> NewEntry {
        let mut entry = session.entry(self.message);
        if let Some(id) = self.id.filter(|_| keep_id) {
            entry.id = EntryId::from_external(session.id(), &id);
            entry.external_id = Some(id);
        }
        entry
    }
}
