//! Encodes messages as Anthropic content blocks.
//!
//! The blocks are built here and passed through the client unchanged, because the client's
//! own types lose `is_error` on tool results and can set a cache breakpoint only at the
//! end of a message.
//!
//! Invariant: blocks stay in order. The client moves thinking to the start of a message,
//! so a message with thinking further down is sent as two, which Anthropic merges.

use genai::chat::{CacheControl, ChatMessage, ChatRole, ContentPart, MessageContent};
use serde_json::{Value, json};
use throughline_context::RequestMessage;
use throughline_model::{Block, Content, Role};

use super::chat_messages;

/// The maximum number of cache breakpoints per request.
const MAX_CACHE_BREAKPOINTS: usize = 4;

/// Encodes the messages; system messages first.
pub(super) fn to_chat_messages(messages: &[RequestMessage]) -> Vec<ChatMessage> {
    let all: usize = messages
        .iter()
        .map(|message| message.breakpoints.len())
        .sum();
    // Drop the earliest breakpoints: later ones cover more.
    let mut passed_over = all.saturating_sub(MAX_CACHE_BREAKPOINTS);
    let mut sent = Vec::new();
    for message in messages {
        let mut marks = message.breakpoints.clone();
        let over = passed_over.min(marks.len());
        marks.drain(..over);
        passed_over -= over;
        match message.role {
            Role::System => sent.extend(system_messages(&message.content, &marks)),
            Role::User | Role::Tool => {
                let blocks = to_blocks(&message.content, &marks, message.role);
                sent.push(to_chat_message(ChatRole::User, blocks));
            }
            Role::Assistant => {
                let blocks = to_blocks(&message.content, &marks, message.role);
                let runs = split_at_thinking(blocks);
                sent.extend(
                    runs.into_iter()
                        .map(|run| to_chat_message(ChatRole::Assistant, run)),
                );
            }
        }
    }
    sent
}

fn system_messages<'a>(
    content: &'a Content,
    marks: &'a [usize],
) -> impl Iterator<Item = ChatMessage> + 'a {
    let texts = content.0.iter().enumerate();
    texts.filter_map(move |(at, block)| {
        let message = ChatMessage::system(block.as_text()?);
        Some(if marks.contains(&at) {
            message.with_options(CacheControl::Ephemeral)
        } else {
            message
        })
    })
}

fn to_chat_message(role: ChatRole, blocks: Vec<Value>) -> ChatMessage {
    let parts = blocks
        .into_iter()
        .map(|block| ContentPart::from_custom(block, None));
    ChatMessage::new(role, MessageContent::from_parts(parts.collect::<Vec<_>>()))
}

/// Encodes the blocks of a message. Never empty, since the API rejects empty messages.
fn to_blocks(content: &Content, marks: &[usize], role: Role) -> Vec<Value> {
    let mut sent: Vec<Value> = Vec::new();
    for (at, block) in content.0.iter().enumerate() {
        sent.extend(to_block(block, role));
        // Thinking blocks cannot carry a cache breakpoint.
        if marks.contains(&at)
            && let Some(last) = sent.last_mut()
            && !is_thinking(last)
        {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    if sent.is_empty() {
        sent.push(json!({"type": "text", "text": chat_messages::OMITTED_CONTENT}));
    }
    sent
}

fn to_block(block: &Block, role: Role) -> Option<Value> {
    Some(match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Thinking { text, signature } => {
            let signature = signature.as_ref()?;
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Block::ToolCall(call) => json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": chat_messages::to_json_object(&call.input),
        }),
        Block::ToolResult(result) => {
            let mut written = json!({
                "type": "tool_result",
                "tool_use_id": result.call_id,
                "content": chat_messages::tool_result_text(&result.content),
            });
            if result.is_error {
                written["is_error"] = json!(true);
            }
            written
        }
        Block::Attachment(attachment) => {
            json!({"type": "text", "text": chat_messages::attachment_note(attachment)})
        }
        Block::Foreign(raw) => {
            let raw: Value = raw.decode().ok()?;
            // Only foreign blocks that Anthropic produced can be sent back.
            if role != Role::Assistant || !is_anthropic_block(raw["type"].as_str()?) {
                return None;
            }
            raw
        }
        _ => return None,
    })
}

fn is_anthropic_block(kind: &str) -> bool {
    matches!(
        kind,
        "server_tool_use" | "mcp_tool_use" | "redacted_thinking"
    ) || (kind.ends_with("_tool_result") && kind != "tool_result")
}

fn is_thinking(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// Splits blocks into runs that have all their thinking at the start.
fn split_at_thinking(blocks: Vec<Value>) -> Vec<Vec<Value>> {
    let mut runs: Vec<Vec<Value>> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(run) if !is_thinking(&block) || run.last().is_none_or(is_thinking) => {
                run.push(block);
            }
            _ => runs.push(vec![block]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_thinks_again_is_split() {
        let block = |kind: &str| json!({"type": kind});
        let runs = split_at_thinking(
            [
                "thinking",
                "redacted_thinking",
                "text",
                "thinking",
                "tool_use",
            ]
            .map(block)
            .to_vec(),
        );
        let kinds: Vec<Vec<&str>> = runs
            .iter()
            .map(|run| {
                run.iter()
                    .filter_map(|block| block["type"].as_str())
                    .collect()
            })
            .collect();
        assert_eq!(
            kinds,
            [
                vec!["thinking", "redacted_thinking", "text"],
                vec!["thinking", "tool_use"]
            ]
        );
    }
}
