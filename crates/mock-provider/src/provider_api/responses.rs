//! OpenAI's Responses API.

use serde_json::{Value, json};

use crate::sse_frame::{SseFrame, split_deltas};
use crate::{Reply, ReplyBlock};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<SseFrame> {
    let event = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        SseFrame::named(kind, &data)
    };
    let mut begun = response_head(model, "in_progress");
    begun["output"] = json!([]);
    let mut frames = vec![event("response.created", json!({"response": begun}))];
    for (at, block) in reply.blocks.iter().enumerate() {
        let item = to_item(block);
        let index = json!({"output_index": at});
        let with = |name: &str, value: Value| {
            let mut data = index.clone();
            data[name] = value;
            data
        };
        let mut empty = item.clone();
        for name in ["content", "summary"] {
            if empty[name].is_array() {
                empty[name] = json!([]);
            }
        }
        if empty["arguments"].is_string() {
            empty["arguments"] = json!("");
        }
        frames.push(event("response.output_item.added", with("item", empty)));
        match block {
            ReplyBlock::Text(text) => frames.extend(split_deltas(text).into_iter().map(|piece| {
                event("response.output_text.delta", with("delta", json!(piece))).into_delta()
            })),
            ReplyBlock::Thinking { text, .. } => {
                frames.extend(split_deltas(text).into_iter().map(|piece| {
                    let kind = "response.reasoning_summary_text.delta";
                    event(kind, with("delta", json!(piece))).into_delta()
                }));
            }
            ReplyBlock::Call { input, .. } => {
                let kind = "response.function_call_arguments.delta";
                frames.push(event(kind, with("delta", json!(input.to_string()))).into_delta());
            }
            ReplyBlock::Raw(_) => {}
        }
        frames.push(event("response.output_item.done", with("item", item)));
    }
    let kind = format!("response.{}", status(reply));
    frames.push(event(&kind, json!({"response": body(reply, model)})));
    frames
}

fn status(reply: &Reply) -> &str {
    super::stop_reason(reply, "completed", "completed")
}

pub(super) fn body(reply: &Reply, model: &str) -> Value {
    let tokens = reply.usage;
    let mut body = response_head(model, status(reply));
    body["output"] = reply.blocks.iter().map(to_item).collect();
    body["usage"] = json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    });
    body
}

pub(super) fn overloaded_frame() -> SseFrame {
    let error = json!({"type": "error", "code": "server_error", "message": "Overloaded"});
    SseFrame::named("error", &error)
}

fn response_head(model: &str, status: &str) -> Value {
    json!({
        "id": "resp_stand_in",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": status,
        "error": null,
    })
}

fn to_item(block: &ReplyBlock) -> Value {
    match block {
        ReplyBlock::Text(text) => json!({
            "type": "message",
            "id": "msg_stand_in",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        ReplyBlock::Thinking { text, signature } => json!({
            "type": "reasoning",
            "id": "rs_stand_in",
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": signature,
        }),
        ReplyBlock::Call { id, name, input } => json!({
            "type": "function_call",
            "id": "fc_stand_in",
            "call_id": id,
            "name": name,
            "arguments": input.to_string(),
            "status": "completed",
        }),
        ReplyBlock::Raw(item) => item.clone(),
    }
}
