//! Parses one message from a line of JSON, in our format or another system's.
//!
//! ```json
//! {"session":"auth","role":"user","content":"hello","at":"2026-11-15T10:00:00Z","id":"m1"}
//! ```
//!
//! Unknown fields are ignored. Every known field is either parsed or an error that names it:
//! invalid values are never replaced by defaults.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, MAX_JSON_DEPTH, Message, Role, Timestamp, ToolResult, is_nested_deeper_than,
};

use crate::error::parser_message;
use crate::surrogate::replace_lone_surrogates;
use crate::{LineError, blocks, json_members};

/// A message, with the session its line assigns it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLine {
    /// The session it belongs to: an id or a name, not yet resolved.
    pub session: Option<String>,
    /// The title of that session.
    pub name: Option<String>,
    /// The project of that session.
    pub project: Option<String>,
    /// The other system's id of the message.
    pub external_id: Option<String>,
    /// The author, if the role is not enough.
    pub author: Option<String>,
    /// When it was written, to the microsecond.
    pub at: Option<Timestamp>,
    /// The message.
    pub message: Message,
    /// Whether lone surrogates were replaced to parse the line.
    pub repaired: bool,
}

/// The known fields, as raw JSON.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    session: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    project: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    author: Option<&'a RawValue>,
    #[serde(borrow)]
    at: Option<&'a RawValue>,
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    latency_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete: Option<&'a RawValue>,
}

/// Parses one message.
///
/// Lone surrogate escapes are replaced everywhere, not only where the parser fails on
/// them: tool inputs are passed on unparsed, and their next reader may be stricter.
pub fn parse_message(line: &str) -> Result<MessageLine, LineError> {
    if is_nested_deeper_than(line.as_bytes(), MAX_JSON_DEPTH) {
        return Err(LineError::TooDeep);
    }
    let mended = replace_lone_surrogates(line);
    let mut read = parse_line(mended.as_deref().unwrap_or(line))?;
    read.repaired |= mended.is_some();
    Ok(read)
}

fn parse_line(line: &str) -> Result<MessageLine, LineError> {
    let members: RawMessage<'_> = serde_json::from_str(line).map_err(|error| {
        if error.is_syntax() || error.is_eof() {
            LineError::not_json(&error)
        } else if line.trim_start().starts_with('{') {
            LineError::DuplicateMember(parser_message(&error))
        } else {
            LineError::NotAnObject
        }
    })?;
    if !line.trim_start().starts_with('{') {
        return Err(LineError::NotAnObject);
    }
    let (message, repaired) = build_message(&members)?;
    Ok(MessageLine {
        session: json_members::parse_text_or_number("session", members.session)?,
        name: json_members::parse_text("name", members.name)?,
        project: json_members::parse_text("project", members.project)?,
        external_id: json_members::parse_text_or_number("id", members.id)?
            .filter(|id| !id.is_empty()),
        author: json_members::parse_text("author", members.author)?,
        at: json_members::parse_time(members.at)?,
        message,
        repaired,
    })
}

fn build_message(members: &RawMessage<'_>) -> Result<(Message, bool), LineError> {
    let role = parse_role(members.role)?;
    let body = members.content.map(blocks::parse_content).transpose()?;
    let (calls, repaired) = match members.tool_calls {
        Some(raw) => blocks::parse_tool_calls(raw)?,
        None => (Vec::new(), false),
    };
    let answers = json_members::parse_text("tool_call_id", members.tool_call_id)?;
    let content = match (body, answers) {
        (body, Some(call_id)) if role == Role::Tool => {
            Content(vec![wrap_tool_result(call_id, body.unwrap_or_default())])
        }
        (None, _) if calls.is_empty() => return Err(LineError::MissingContent),
        (body, _) => append_calls(body.unwrap_or_default(), calls),
    };
    let message = Message {
        role,
        content,
        model: json_members::parse_text("model", members.model)?,
        provider: json_members::parse_text("provider", members.provider)?,
        usage: json_members::parse_usage(members.usage)?,
        latency_ms: json_members::parse_millis("latency_ms", members.latency_ms)?,
        incomplete: json_members::parse_flag("incomplete", members.incomplete)?,
    };
    Ok((message, repaired))
}

fn parse_role(raw: Option<&RawValue>) -> Result<Role, LineError> {
    let text = json_members::parse_text("role", raw)?.ok_or(LineError::MissingRole)?;
    match text.to_ascii_lowercase().as_str() {
        "user" | "human" => Ok(Role::User),
        "assistant" | "ai" | "model" => Ok(Role::Assistant),
        "system" | "developer" => Ok(Role::System),
        "tool" | "function" => Ok(Role::Tool),
        _ => Err(LineError::UnknownRole(text)),
    }
}

/// Wraps content in a tool result, unless it contains one already.
fn wrap_tool_result(call_id: String, content: Content) -> Block {
    match <[Block; 1]>::try_from(content.0) {
        Ok([Block::ToolResult(result)]) if result.call_id == call_id => Block::ToolResult(result),
        Ok([only]) => tool_result(call_id, vec![only]),
        Err(blocks) => tool_result(call_id, blocks),
    }
}

fn tool_result(call_id: String, blocks: Vec<Block>) -> Block {
    Block::ToolResult(ToolResult {
        call_id,
        content: Content(blocks),
        is_error: false,
    })
}

/// Appends the calls to the content; empty text beside calls is dropped.
fn append_calls(body: Content, calls: Vec<Block>) -> Content {
    if calls.is_empty() {
        return body;
    }
    let mut blocks = body.0;
    blocks.retain(|block| block.as_text() != Some(""));
    blocks.extend(calls);
    Content(blocks)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
