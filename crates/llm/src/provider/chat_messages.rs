//! Encodes messages for providers other than Anthropic, which support fewer block types.

use genai::chat::{
    CacheControl, ChatMessage, ContentPart, MessageContent, ToolCall as Call, ToolResponse,
};
use serde_json::{Value, json};
use throughline_context::RequestMessage;
use throughline_model::{Attachment, Block, Content, Json, Role};

use super::ApiProtocol;

/// Sent in place of a message that has no content the provider accepts.
pub(super) const OMITTED_CONTENT: &str = "[left out: it cannot be sent here]";

/// Encodes the messages, with at most one system message.
pub(super) fn to_chat_messages(
    messages: &[RequestMessage],
    wire: ApiProtocol,
    thinks: bool,
) -> Vec<ChatMessage> {
    messages
        .iter()
        .map(|message| {
            let content = &message.content;
            let sent = match message.role {
                Role::System => ChatMessage::system(content.to_text().into_owned()),
                Role::User => ChatMessage::user(to_parts(content, wire, false)),
                Role::Assistant => ChatMessage::assistant(to_parts(content, wire, thinks)),
                Role::Tool => ChatMessage::tool(to_parts(content, wire, false)),
            };
            let can_be_marked = matches!(message.role, Role::System | Role::User);
            if can_be_marked && !message.breakpoints.is_empty() {
                sent.with_options(CacheControl::Ephemeral)
            } else {
                sent
            }
        })
        .collect()
}

fn to_parts(content: &Content, wire: ApiProtocol, thinks: bool) -> MessageContent {
    let mut parts = Vec::new();
    for block in &content.0 {
        match block {
            Block::Text(text) => parts.push(ContentPart::Text(text.clone())),
            Block::Thinking { text, signature } => match wire {
                // These providers need the signature to continue the reasoning.
                ApiProtocol::Gemini | ApiProtocol::Responses => {
                    parts.extend(signature.clone().map(ContentPart::ThoughtSignature));
                }
                ApiProtocol::Chat | ApiProtocol::Anthropic if thinks && !text.is_empty() => {
                    parts.push(ContentPart::ReasoningContent(text.clone()));
                }
                ApiProtocol::Chat | ApiProtocol::Anthropic => {}
            },
            Block::ToolCall(call) => parts.push(ContentPart::ToolCall(Call {
                call_id: call.id.clone(),
                fn_name: call.name.clone(),
                fn_arguments: to_json_object(&call.input),
                thought_signatures: None,
            })),
            Block::ToolResult(result) => {
                let text = tool_result_text(&result.content);
                // These APIs have no error flag for tool results.
                let text = if result.is_error {
                    format!("The tool failed: {text}")
                } else {
                    text
                };
                parts.push(ContentPart::ToolResponse(ToolResponse::new(
                    result.call_id.clone(),
                    text,
                )));
            }
            Block::Attachment(attachment) => {
                parts.push(ContentPart::Text(attachment_note(attachment)));
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        parts.push(ContentPart::Text(OMITTED_CONTENT.to_owned()));
    }
    MessageContent::from_parts(parts)
}

/// Returns the result of a tool as text.
pub(super) fn tool_result_text(content: &Content) -> String {
    let lines: Vec<String> = content
        .0
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.clone()),
            Block::Attachment(attachment) => Some(attachment_note(attachment)),
            Block::Foreign(raw) => Some(raw.to_string()),
            _ => None,
        })
        .collect();
    lines.join("\n")
}

/// Describes an attachment that is not sent.
pub(super) fn attachment_note(attachment: &Attachment) -> String {
    let name = attachment.name.as_deref().unwrap_or("a file");
    format!(
        "[attached: {name} ({}, {} bytes)]",
        attachment.media_type, attachment.bytes
    )
}

/// Returns the input of a tool as a JSON object, as all APIs require.
pub(super) fn to_json_object(input: &Json) -> Value {
    match input.decode() {
        Ok(Value::Object(members)) => Value::Object(members),
        Ok(Value::Null) => json!({}),
        // A number out of range, or text that is not valid JSON.
        Ok(_) | Err(_) => json!({"input": input.as_str()}),
    }
}
