//! What a message costs in a request.
//!
//! An entry is counted once, when it is appended or first needed, and the figure is
//! stored beside the log: a budget is then a sum. Costs are additive by block, so that
//! what is elided or left out can be taken off again.
//!
//! Thinking counts for nothing here: it is sent back only within the turn it belongs
//! to, and the request adds it there.

use throughline_model::{Attachment, Block, Content, Entry};

use crate::Encoding;
use crate::visible_entries::visible_messages;

/// What every message costs besides its blocks: role and delimiters.
pub const MESSAGE_TOKENS: u64 = 4;
/// What a tool call costs besides its name and input: id and structure.
pub const CALL_TOKENS: u64 = 8;
/// What a tool result costs besides its content: id and structure.
pub const RESULT_TOKENS: u64 = 8;
/// What a picture costs, whatever its bytes: about 1.15 megapixels, the size to which
/// providers scale larger ones down.
pub const IMAGE_TOKENS: u64 = 1_600;

/// What an entry costs in a request. Entries that say nothing to the model cost nothing.
///
/// Messages are said, and so is what a session was restored or merged from.
pub fn count_entry_tokens(encoding: Encoding, entry: &Entry) -> u64 {
    visible_messages(entry)
        .iter()
        .map(|said| count_message_tokens(encoding, &said.content))
        .sum()
}

/// What a message of these blocks costs.
pub fn count_message_tokens(encoding: Encoding, content: &Content) -> u64 {
    MESSAGE_TOKENS + count_content_tokens(encoding, content)
}

/// What these blocks cost.
pub fn count_content_tokens(encoding: Encoding, content: &Content) -> u64 {
    content
        .0
        .iter()
        .map(|block| count_block_tokens(encoding, block))
        .sum()
}

/// What one block costs.
pub(crate) fn count_block_tokens(encoding: Encoding, block: &Block) -> u64 {
    match block {
        Block::Text(text) => encoding.count(text),
        Block::ToolCall(call) => {
            CALL_TOKENS + encoding.count(&call.name) + encoding.count(call.input.as_str())
        }
        Block::ToolResult(result) => {
            RESULT_TOKENS + count_content_tokens(encoding, &result.content)
        }
        Block::Attachment(attachment) if is_image(attachment) => IMAGE_TOKENS,
        Block::Attachment(attachment) => encoding.count(&describe_attachment(attachment)),
        Block::Foreign(json) => encoding.count(json.as_str()),
        // Thinking, and whatever is added to the model without a cost of its own.
        _ => 0,
    }
}

/// What one block costs where it is sent with its thinking.
pub(crate) fn count_sent_tokens(encoding: Encoding, block: &Block) -> u64 {
    match block {
        Block::Thinking { text, .. } => encoding.count(text),
        other => count_block_tokens(encoding, other),
    }
}

/// Whether an attachment is sent as a picture.
pub(crate) fn is_image(attachment: &Attachment) -> bool {
    attachment.media_type.starts_with("image/")
}

/// What stands in a request for an attachment that is not a picture.
pub(crate) fn describe_attachment(attachment: &Attachment) -> String {
    format!(
        "[attachment: {}, {}, {} bytes]",
        attachment.name.as_deref().unwrap_or("unnamed"),
        attachment.media_type,
        attachment.bytes
    )
}

#[cfg(test)]
mod tests {
    use throughline_model::{Digest, Json, ToolCall, ToolResult};

    use super::*;

    fn cost(block: Block) -> u64 {
        count_content_tokens(Encoding::O200k, &Content(vec![block]))
    }

    #[test]
    fn each_kind_of_block_has_its_cost() {
        assert_eq!(cost(Block::Text("hello world".into())), 2);
        assert_eq!(
            cost(Block::ToolCall(ToolCall {
                id: "a long id that is not counted".into(),
                name: "hello".into(),
                input: Json::parse("7").unwrap(),
            })),
            CALL_TOKENS + 2
        );
        assert_eq!(
            cost(Block::ToolResult(ToolResult {
                call_id: "c".into(),
                content: Content::text("hello world"),
                is_error: false,
            })),
            RESULT_TOKENS + 2
        );
        assert_eq!(
            cost(Block::Thinking {
                text: "a long thought".into(),
                signature: None
            }),
            0
        );
    }

    #[test]
    fn attachments_cost_the_same_whatever_their_bytes() {
        let attachment = |media_type: &str, bytes| {
            Block::Attachment(Attachment {
                blob: Digest::of(b""),
                media_type: media_type.into(),
                bytes,
                name: Some("plan".into()),
            })
        };
        assert_eq!(cost(attachment("image/png", 10)), IMAGE_TOKENS);
        assert_eq!(cost(attachment("image/png", 10_000_000)), IMAGE_TOKENS);
        assert!(cost(attachment("application/pdf", 10_000_000)) < 30);
    }
}
