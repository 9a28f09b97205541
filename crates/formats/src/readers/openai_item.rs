//! Parses items of OpenAI's Responses and Conversations APIs, which several systems store.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Block, Content, Message, Role, ToolCall, ToolResult};

use super::emitter::Emitter;
use super::message_content::{
    as_text, decode, foreign_block, parse_content, parse_optional_content, to_text,
};
use crate::blocks;

/// The known fields of an item, as raw JSON.
#[derive(Deserialize)]
pub(super) struct RawItem<'a> {
    #[serde(borrow)]
    r#type: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
}

/// An item and its id in the source.
pub(super) struct Item {
    pub(super) id: Option<String>,
    pub(super) message: Message,
}

/// Parses an item; one of an unknown type becomes a message with a foreign block.
pub(super) fn parse_item(emitter: &mut Emitter<'_>, json: &str) -> Result<Item, String> {
    let members = RawItem::parse(json)?;
    Ok(Item {
        id: to_text(members.id).filter(|id| !id.is_empty()),
        message: members.to_message(emitter, || Ok(json))?,
    })
}

impl<'a> RawItem<'a> {
    pub(super) fn parse(json: &'a str) -> Result<Self, String> {
        crate::json_members::parse_object(json.trim())
    }

    /// Returns the type of the item.
    pub(super) fn type_of(&self) -> Option<Cow<'a, str>> {
        as_text(self.r#type)
    }

    /// Converts the item to a message; `json` returns its source text.
    pub(super) fn to_message<'j>(
        &self,
        emitter: &mut Emitter<'_>,
        json: impl FnOnce() -> Result<&'j str, String>,
    ) -> Result<Message, String> {
        Ok(match self.type_of().as_deref() {
            Some("message") | None if self.role.is_some() => to_role_message(emitter, self)?,
            Some("reasoning") => to_reasoning_message(emitter, self),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                to_call_message(self)?
            }
            Some(
                "function_call_output" | "custom_tool_call_output" | "local_shell_call_output",
            ) => to_output_message(emitter, self)?,
            Some(_) => Message::new(
                Role::Assistant,
                Content(vec![foreign_block(json()?.trim())]),
            ),
            None => return Err("it has neither `type` nor `role`".to_owned()),
        })
    }
}

fn to_role_message(emitter: &mut Emitter<'_>, members: &RawItem<'_>) -> Result<Message, String> {
    let role = as_text(members.role).ok_or("its `role` is not a string")?;
    let role = match &*role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        "tool" => Role::Tool,
        other => return Err(format!("{other:?} is not a role")),
    };
    let mut message = Message::new(role, parse_optional_content(emitter, members.content));
    message.incomplete = as_text(members.status).as_deref() == Some("incomplete");
    Ok(message)
}

fn to_reasoning_message(emitter: &mut Emitter<'_>, members: &RawItem<'_>) -> Message {
    let mut parts = parse_optional_content(emitter, members.content)
        .to_text()
        .into_owned();
    if parts.is_empty() {
        parts = parse_optional_content(emitter, members.summary)
            .to_text()
            .into_owned();
    }
    let thinking = Block::Thinking {
        text: parts,
        signature: to_text(members.encrypted_content),
    };
    Message::new(Role::Assistant, Content(vec![thinking]))
}

fn to_call_message(members: &RawItem<'_>) -> Result<Message, String> {
    let (input, _) =
        blocks::parse_arguments(members.arguments.or(members.input).or(members.action))?;
    let call = ToolCall {
        id: to_text(members.call_id)
            .or_else(|| to_text(members.id))
            .ok_or("it has no `call_id`")?,
        name: to_text(members.name).unwrap_or_else(|| "local_shell".to_owned()),
        input,
    };
    Ok(Message::new(
        Role::Assistant,
        Content(vec![Block::ToolCall(call)]),
    ))
}

fn to_output_message(emitter: &mut Emitter<'_>, members: &RawItem<'_>) -> Result<Message, String> {
    #[derive(Deserialize)]
    struct WrappedOutput<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        success: Option<bool>,
    }
    let call_id = to_text(members.call_id).ok_or("it has no `call_id`")?;
    let mut is_error = false;
    let content = match members.output {
        Some(raw) if raw.get().starts_with('{') => match decode::<WrappedOutput<'_>>(Some(raw)) {
            Some(WrappedOutput {
                content: Some(inner),
                success,
            }) => {
                is_error = success == Some(false);
                parse_content(emitter, inner)
            }
            _ => Content(vec![foreign_block(raw.get())]),
        },
        output => parse_optional_content(emitter, output),
    };
    let result = ToolResult {
        call_id,
        content,
        is_error,
    };
    Ok(Message::new(
        Role::Tool,
        Content(vec![Block::ToolResult(result)]),
    ))
}
