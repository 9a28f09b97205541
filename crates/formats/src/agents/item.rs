//! Items of OpenAI's Responses and Conversations APIs, which several systems store.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Block, Content, Message, Role, ToolCall, ToolResult};

use super::content::{any, content, content_of, foreign, text, word};
use super::telling::Telling;
use crate::blocks;

/// The members of an item that mean something, still as text.
#[derive(Deserialize)]
pub(super) struct Members<'a> {
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

/// An item, and what its system calls it.
pub(super) struct Item {
    pub(super) id: Option<String>,
    pub(super) message: Message,
}

/// Reads an item; what is of no known type becomes a message with it in it, as it is.
pub(super) fn item(telling: &mut Telling<'_>, json: &str) -> Result<Item, String> {
    let members = Members::of(json)?;
    Ok(Item {
        id: text(members.id).filter(|id| !id.is_empty()),
        message: members.message(telling, || Ok(json))?,
    })
}

impl<'a> Members<'a> {
    pub(super) fn of(json: &'a str) -> Result<Self, String> {
        crate::members::object(json.trim())
    }

    /// What the item says it is.
    pub(super) fn type_of(&self) -> Option<Cow<'a, str>> {
        word(self.r#type)
    }

    /// The message that the item is; `json` is what it was read from.
    pub(super) fn message<'j>(
        &self,
        telling: &mut Telling<'_>,
        json: impl FnOnce() -> Result<&'j str, String>,
    ) -> Result<Message, String> {
        Ok(match self.type_of().as_deref() {
            Some("message") | None if self.role.is_some() => said(telling, self)?,
            Some("reasoning") => thought(telling, self),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => called(self)?,
            Some(
                "function_call_output" | "custom_tool_call_output" | "local_shell_call_output",
            ) => answered(telling, self)?,
            Some(_) => Message::new(Role::Assistant, Content(vec![foreign(json()?.trim())])),
            None => return Err("it has neither `type` nor `role`".to_owned()),
        })
    }
}

fn said(telling: &mut Telling<'_>, members: &Members<'_>) -> Result<Message, String> {
    let role = word(members.role).ok_or("its `role` is no text")?;
    let role = match &*role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" | "developer" => Role::System,
        "tool" => Role::Tool,
        other => return Err(format!("{other:?} is not a role")),
    };
    let mut message = Message::new(role, content_of(telling, members.content));
    message.incomplete = word(members.status).as_deref() == Some("incomplete");
    Ok(message)
}

fn thought(telling: &mut Telling<'_>, members: &Members<'_>) -> Message {
    let mut parts = content_of(telling, members.content).to_text().into_owned();
    if parts.is_empty() {
        parts = content_of(telling, members.summary).to_text().into_owned();
    }
    let thinking = Block::Thinking {
        text: parts,
        signature: text(members.encrypted_content),
    };
    Message::new(Role::Assistant, Content(vec![thinking]))
}

fn called(members: &Members<'_>) -> Result<Message, String> {
    let (input, _) = blocks::arguments(members.arguments.or(members.input).or(members.action))?;
    let call = ToolCall {
        id: text(members.call_id)
            .or_else(|| text(members.id))
            .ok_or("it has no `call_id`")?,
        name: text(members.name).unwrap_or_else(|| "local_shell".to_owned()),
        input,
    };
    Ok(Message::new(
        Role::Assistant,
        Content(vec![Block::ToolCall(call)]),
    ))
}

fn answered(telling: &mut Telling<'_>, members: &Members<'_>) -> Result<Message, String> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        success: Option<bool>,
    }
    let call_id = text(members.call_id).ok_or("it has no `call_id`")?;
    let mut is_error = false;
    let content = match members.output {
        Some(raw) if raw.get().starts_with('{') => match any::<Wrapped<'_>>(Some(raw)) {
            Some(Wrapped {
                content: Some(inner),
                success,
            }) => {
                is_error = success == Some(false);
                content(telling, inner)
            }
            _ => Content(vec![foreign(raw.get())]),
        },
        output => content_of(telling, output),
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
