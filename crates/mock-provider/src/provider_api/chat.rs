//! OpenAI's Chat Completions API, which compatible providers use too.

use serde_json::{Value, json};

use crate::sse_frame::{SseFrame, split_deltas};
use crate::{Reply, ReplyBlock};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<SseFrame> {
    let chunk = |choices: Value| {
        let mut chunk = completion_head(model, "chat.completion.chunk");
        chunk["choices"] = choices;
        chunk
    };
    let piece = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        SseFrame::unnamed(chunk(json!([choice]))).into_delta()
    };
    let mut first = piece(json!({"role": "assistant", "content": ""}));
    first.is_delta = false;
    let mut frames = vec![first];
    let mut calls = 0;
    for block in &reply.blocks {
        match block {
            ReplyBlock::Text(text) => frames.extend(
                split_deltas(text)
                    .into_iter()
                    .map(|text| piece(json!({"content": text}))),
            ),
            ReplyBlock::Thinking { text, .. } => frames.extend(
                split_deltas(text)
                    .into_iter()
                    .map(|text| piece(json!({"reasoning_content": text}))),
            ),
            ReplyBlock::Call { id, name, input } => {
                let input = input.to_string();
                let (begin, end) = input.split_at(input.len().min(1));
                let call = |call: Value| piece(json!({"tool_calls": [call]}));
                frames.push(call(json!({
                    "index": calls,
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": begin},
                })));
                frames.push(call(
                    json!({"index": calls, "function": {"arguments": end}}),
                ));
                calls += 1;
            }
            ReplyBlock::Raw(delta) => frames.push(piece(delta.clone())),
        }
    }
    let reason = super::stop_reason(reply, "tool_calls", "stop");
    frames.push(SseFrame::unnamed(chunk(json!([
        {"index": 0, "delta": {}, "finish_reason": reason}
    ]))));
    let mut last = chunk(json!([]));
    last["usage"] = usage(reply);
    frames.push(SseFrame::unnamed(last));
    frames.push(SseFrame::unnamed("[DONE]"));
    frames
}

pub(super) fn body(reply: &Reply, model: &str) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in &reply.blocks {
        match block {
            ReplyBlock::Text(more) => text.push_str(more),
            ReplyBlock::Call { id, name, input } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            })),
            ReplyBlock::Thinking { .. } | ReplyBlock::Raw(_) => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut body = completion_head(model, "chat.completion");
    body["choices"] = json!([{
        "index": 0,
        "message": message,
        "finish_reason": super::stop_reason(reply, "tool_calls", "stop"),
    }]);
    body["usage"] = usage(reply);
    body
}

pub(super) fn overloaded_frame() -> SseFrame {
    SseFrame::unnamed(json!({
        "error": {"message": "The server is overloaded", "type": "server_error", "code": 503},
    }))
}

fn completion_head(model: &str, object: &str) -> Value {
    json!({"id": "chatcmpl-stand-in", "object": object, "created": 0, "model": model})
}

fn usage(reply: &Reply) -> Value {
    let tokens = reply.usage;
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
        },
    })
}
