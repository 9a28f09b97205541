//! One message as a JSON object on a line, from whoever wrote it.
//!
//! ```json
//! {"session":"auth","role":"user","content":"hello","at":"2026-11-15T10:00:00Z","id":"m1"}
//! ```
//!
//! Members that mean nothing here are ignored. Everything that means something is
//! either understood or an error that names it: there are no defaults for what is broken.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    Block, Content, MAX_JSON_DEPTH, Message, Role, Timestamp, ToolResult, is_nested_deeper_than,
};

use crate::error::reason;
use crate::surrogate::repair;
use crate::{LineError, blocks, members};

/// A message and what its line says about where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLine {
    /// The session it belongs to: an id or a name, unresolved.
    pub session: Option<String>,
    /// The title of that session.
    pub name: Option<String>,
    /// The project of that session.
    pub project: Option<String>,
    /// What the other system calls the message.
    pub external_id: Option<String>,
    /// Who said it, where the role alone does not tell.
    pub author: Option<String>,
    /// When it was said, to the microsecond.
    pub at: Option<Timestamp>,
    /// What was said.
    pub message: Message,
    /// Whether half characters were replaced to make sense of the line.
    pub repaired: bool,
}

/// The members that mean something, still as text.
#[derive(Deserialize)]
struct Members<'a> {
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

/// Reads one message.
///
/// Escapes of half characters are replaced wherever they stand, not only where the
/// parser trips over them: what a tool was asked is passed on unparsed, and the next
/// to read it may be less forgiving.
pub fn parse_message(line: &str) -> Result<MessageLine, LineError> {
    if is_nested_deeper_than(line.as_bytes(), MAX_JSON_DEPTH) {
        return Err(LineError::TooDeep);
    }
    let mended = repair(line);
    let mut read = parse(mended.as_deref().unwrap_or(line))?;
    read.repaired |= mended.is_some();
    Ok(read)
}

fn parse(line: &str) -> Result<MessageLine, LineError> {
    let members: Members<'_> = serde_json::from_str(line).map_err(|error| {
        if error.is_syntax() || error.is_eof() {
            LineError::not_json(&error)
        } else if line.trim_start().starts_with('{') {
            LineError::Ambiguous(reason(&error))
        } else {
            LineError::NotAnObject
        }
    })?;
    if !line.trim_start().starts_with('{') {
        return Err(LineError::NotAnObject);
    }
    let (message, repaired) = message(&members)?;
    Ok(MessageLine {
        session: members::text_or_number("session", members.session)?,
        name: members::text("name", members.name)?,
        project: members::text("project", members.project)?,
        external_id: members::text_or_number("id", members.id)?.filter(|id| !id.is_empty()),
        author: members::text("author", members.author)?,
        at: members::time(members.at)?,
        message,
        repaired,
    })
}

fn message(members: &Members<'_>) -> Result<(Message, bool), LineError> {
    let role = role(members.role)?;
    let said = members.content.map(blocks::content).transpose()?;
    let (calls, repaired) = match members.tool_calls {
        Some(raw) => blocks::tool_calls(raw)?,
        None => (Vec::new(), false),
    };
    let answers = members::text("tool_call_id", members.tool_call_id)?;
    let content = match (said, answers) {
        (said, Some(call_id)) if role == Role::Tool => {
            Content(vec![answer(call_id, said.unwrap_or_default())])
        }
        (None, _) if calls.is_empty() => return Err(LineError::MissingContent),
        (said, _) => with_calls(said.unwrap_or_default(), calls),
    };
    let message = Message {
        role,
        content,
        model: members::text("model", members.model)?,
        provider: members::text("provider", members.provider)?,
        usage: members::usage(members.usage)?,
        latency_ms: members::millis("latency_ms", members.latency_ms)?,
        incomplete: members::flag("incomplete", members.incomplete)?,
    };
    Ok((message, repaired))
}

fn role(raw: Option<&RawValue>) -> Result<Role, LineError> {
    let text = members::text("role", raw)?.ok_or(LineError::MissingRole)?;
    match text.to_ascii_lowercase().as_str() {
        "user" | "human" => Ok(Role::User),
        "assistant" | "ai" | "model" => Ok(Role::Assistant),
        "system" | "developer" => Ok(Role::System),
        "tool" | "function" => Ok(Role::Tool),
        _ => Err(LineError::UnknownRole(text)),
    }
}

/// What a tool answered, unless the content says so itself.
fn answer(call_id: String, content: Content) -> Block {
    match <[Block; 1]>::try_from(content.0) {
        Ok([Block::ToolResult(result)]) if result.call_id == call_id => Block::ToolResult(result),
        Ok([only]) => result(call_id, vec![only]),
        Err(blocks) => result(call_id, blocks),
    }
}

fn result(call_id: String, blocks: Vec<Block>) -> Block {
    Block::ToolResult(ToolResult {
        call_id,
        content: Content(blocks),
        is_error: false,
    })
}

/// The calls after what was said; an empty text beside calls is nothing said.
fn with_calls(said: Content, calls: Vec<Block>) -> Content {
    if calls.is_empty() {
        return said;
    }
    let mut blocks = said.0;
    blocks.retain(|block| block.as_text() != Some(""));
    blocks.extend(calls);
    Content(blocks)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
