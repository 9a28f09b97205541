//! The token cost of entries, messages and blocks in a request.
//!
//! An entry is counted once, when it is appended or first needed, and the count is
//! stored next to the log, so that a budget is a sum. Costs are additive by block, so
//! that elided or omitted blocks can be subtracted.
//!
//! Thinking is not counted here: it is sent back only within its own turn, where the
//! request adds it.

use throughline_model::{Attachment, Block, Content, Entry};

use crate::Encoding;
use crate::visible_entries::visible_messages;

/// The cost of a message besides its blocks: role and delimiters.
pub const MESSAGE_TOKENS: u64 = 4;
/// The cost of a tool call besides its name and input: id and structure.
pub const CALL_TOKENS: u64 = 8;
/// The cost of a tool result besides its content: id and structure.
pub const RESULT_TOKENS: u64 = 8;
/// The cost of an image of any size: about 1.15 megapixels, to which providers scale
/// larger ones down.
pub const IMAGE_TOKENS: u64 = 1_600;

/// The cost of an entry in a request; zero for entries that are not sent to the model.
///
/// Messages are sent, and so are the restoration or merge summaries of a session.
pub fn count_entry_tokens(encoding: Encoding, entry: &Entry) -> u64 {
    visible_messages(entry)
        .iter()
        .map(|message| count_message_tokens(encoding, &message.content))
        .sum()
}

/// The cost of a message with this content.
pub fn count_message_tokens(encoding: Encoding, content: &Content) -> u64 {
    MESSAGE_TOKENS + count_content_tokens(encoding, content)
}

/// The cost of the blocks.
pub fn count_content_tokens(encoding: Encoding, content: &Content) -> u64 {
    content
        .0
        .iter()
        .map(|block| count_block_tokens(encoding, block))
        .sum()
}

/// The cost of one block.
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
        // Thinking, and block types without a cost of their own.
        _ => 0,
    }
}

/// The cost of one block including thinking.
pub(crate) fn count_sent_tokens(encoding: Encoding, block: &Block) -> u64 {
    match block {
        Block::Thinking { text, .. } => encoding.count(text),
        other => count_block_tokens(encoding, other),
    }
}

/// Whether an attachment is sent as an image.
pub(crate) fn is_image(attachment: &Attachment) -> bool {
    attachment.media_type.starts_with("image/")
}

/// The text that replaces an attachment that is not an image.
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
