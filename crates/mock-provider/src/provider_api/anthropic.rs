//! Anthropic's Messages API.

use serde_json::{Value, json};

use crate::sse_frame::{SseFrame, split_deltas};
use crate::{Reply, ReplyBlock};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<SseFrame> {
    let mut message = message_head(model);
    message["content"] = json!([]);
    message["usage"] = usage(reply, 1);
    let mut frames = vec![
        SseFrame::named(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        ),
        SseFrame::named("ping", &json!({"type": "ping"})),
    ];
    for (index, reply_block) in reply.blocks.iter().enumerate() {
        push_block_frames(index, reply_block, &mut frames);
    }
    let ending = json!({
        "type": "message_delta",
        "delta": {"stop_reason": super::stop_reason(reply, "tool_use", "end_turn"), "stop_sequence": null},
        "usage": {"output_tokens": reply.usage.output},
    });
    frames.push(SseFrame::named("message_delta", &ending));
    frames.push(SseFrame::named(
        "message_stop",
        &json!({"type": "message_stop"}),
    ));
    frames
}

fn push_block_frames(index: usize, reply_block: &ReplyBlock, frames: &mut Vec<SseFrame>) {
    let mut block = to_block(reply_block);
    let mut deltas = Vec::new();
    match reply_block {
        ReplyBlock::Text(text) => {
            block["text"] = json!("");
            deltas.extend(
                split_deltas(text)
                    .into_iter()
                    .map(|piece| json!({"type": "text_delta", "text": piece})),
            );
        }
        ReplyBlock::Thinking { text, signature } => {
            block["thinking"] = json!("");
            block["signature"] = json!("");
            deltas.extend(
                split_deltas(text)
                    .into_iter()
                    .map(|piece| json!({"type": "thinking_delta", "thinking": piece})),
            );
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
        }
        ReplyBlock::Call { .. } | ReplyBlock::Raw(_) if block["input"].is_object() => {
            let input = block["input"].take().to_string();
            block["input"] = json!({});
            // In two deltas, neither of which is valid JSON by itself.
            let (first, second) = input.split_at(1);
            deltas.extend(
                [first, second]
                    .map(|part| json!({"type": "input_json_delta", "partial_json": part})),
            );
        }
        ReplyBlock::Call { .. } | ReplyBlock::Raw(_) => {}
    }
    frames.push(SseFrame::named(
        "content_block_start",
        &json!({"type": "content_block_start", "index": index, "content_block": block}),
    ));
    frames.extend(deltas.into_iter().map(|delta| {
        let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
        SseFrame::named("content_block_delta", &data).into_delta()
    }));
    frames.push(SseFrame::named(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    ));
}

pub(super) fn body(reply: &Reply, model: &str) -> Value {
    let mut message = message_head(model);
    message["content"] = reply.blocks.iter().map(to_block).collect();
    message["stop_reason"] = json!(super::stop_reason(reply, "tool_use", "end_turn"));
    message["usage"] = usage(reply, reply.usage.output);
    message
}

pub(super) fn overloaded_frame() -> SseFrame {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    SseFrame::named("error", &json!({"type": "error", "error": error}))
}

fn message_head(model: &str) -> Value {
    json!({
        "id": "msg_stand_in",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_reason": null,
        "stop_sequence": null,
    })
}

/// Returns the usage; here cached tokens are not included in the input tokens.
fn usage(reply: &Reply, output: u64) -> Value {
    let tokens = reply.usage;
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cache_read + tokens.cache_write),
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": output,
    })
}

fn to_block(reply_block: &ReplyBlock) -> Value {
    match reply_block {
        ReplyBlock::Text(text) => json!({"type": "text", "text": text}),
        ReplyBlock::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        ReplyBlock::Call { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        ReplyBlock::Raw(block) => block.clone(),
    }
}
