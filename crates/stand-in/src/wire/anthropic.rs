//! Anthropic's Messages.

use serde_json::{Value, json};

use crate::frame::{Frame, pieces};
use crate::{Reply, Said};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<Frame> {
    let mut message = head(model);
    message["content"] = json!([]);
    message["usage"] = usage(reply, 1);
    let mut frames = vec![
        Frame::named(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        ),
        Frame::named("ping", &json!({"type": "ping"})),
    ];
    for (index, said) in reply.said.iter().enumerate() {
        block_frames(index, said, &mut frames);
    }
    let ending = json!({
        "type": "message_delta",
        "delta": {"stop_reason": super::stop(reply, "tool_use", "end_turn"), "stop_sequence": null},
        "usage": {"output_tokens": reply.usage.output},
    });
    frames.push(Frame::named("message_delta", &ending));
    frames.push(Frame::named(
        "message_stop",
        &json!({"type": "message_stop"}),
    ));
    frames
}

fn block_frames(index: usize, said: &Said, frames: &mut Vec<Frame>) {
    let mut block = block(said);
    let mut deltas = Vec::new();
    match said {
        Said::Text(text) => {
            block["text"] = json!("");
            deltas.extend(
                pieces(text)
                    .into_iter()
                    .map(|piece| json!({"type": "text_delta", "text": piece})),
            );
        }
        Said::Thinking { text, signature } => {
            block["thinking"] = json!("");
            block["signature"] = json!("");
            deltas.extend(
                pieces(text)
                    .into_iter()
                    .map(|piece| json!({"type": "thinking_delta", "thinking": piece})),
            );
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
        }
        Said::Call { .. } | Said::Raw(_) if block["input"].is_object() => {
            let input = block["input"].take().to_string();
            block["input"] = json!({});
            // In two halves, neither of which is JSON.
            let (first, second) = input.split_at(1);
            deltas.extend(
                [first, second]
                    .map(|part| json!({"type": "input_json_delta", "partial_json": part})),
            );
        }
        Said::Call { .. } | Said::Raw(_) => {}
    }
    frames.push(Frame::named(
        "content_block_start",
        &json!({"type": "content_block_start", "index": index, "content_block": block}),
    ));
    frames.extend(deltas.into_iter().map(|delta| {
        let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
        Frame::named("content_block_delta", &data).piece()
    }));
    frames.push(Frame::named(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    ));
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let mut message = head(model);
    message["content"] = reply.said.iter().map(block).collect();
    message["stop_reason"] = json!(super::stop(reply, "tool_use", "end_turn"));
    message["usage"] = usage(reply, reply.usage.output);
    message
}

pub(super) fn overloaded() -> Frame {
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    Frame::named("error", &json!({"type": "error", "error": error}))
}

fn head(model: &str) -> Value {
    json!({
        "id": "msg_stand_in",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_reason": null,
        "stop_sequence": null,
    })
}

/// Cached tokens are counted apart from the others here.
fn usage(reply: &Reply, output: u64) -> Value {
    let tokens = reply.usage;
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cache_read + tokens.cache_write),
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": output,
    })
}

fn block(said: &Said) -> Value {
    match said {
        Said::Text(text) => json!({"type": "text", "text": text}),
        Said::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Said::Call { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Said::Raw(block) => block.clone(),
    }
}
