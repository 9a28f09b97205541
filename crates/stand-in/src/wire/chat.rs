//! OpenAI's Chat Completions, as those compatible with it speak it too.

use serde_json::{Value, json};

use crate::frame::{Frame, pieces};
use crate::{Reply, Said};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<Frame> {
    let chunk = |choices: Value| {
        let mut chunk = head(model, "chat.completion.chunk");
        chunk["choices"] = choices;
        chunk
    };
    let piece = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        Frame::bare(chunk(json!([choice]))).piece()
    };
    let mut first = piece(json!({"role": "assistant", "content": ""}));
    first.is_piece = false;
    let mut frames = vec![first];
    let mut calls = 0;
    for said in &reply.said {
        match said {
            Said::Text(text) => frames.extend(
                pieces(text)
                    .into_iter()
                    .map(|text| piece(json!({"content": text}))),
            ),
            Said::Thinking { text, .. } => frames.extend(
                pieces(text)
                    .into_iter()
                    .map(|text| piece(json!({"reasoning_content": text}))),
            ),
            Said::Call { id, name, input } => {
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
            Said::Raw(delta) => frames.push(piece(delta.clone())),
        }
    }
    let reason = super::stop(reply, "tool_calls", "stop");
    frames.push(Frame::bare(chunk(json!([
        {"index": 0, "delta": {}, "finish_reason": reason}
    ]))));
    let mut last = chunk(json!([]));
    last["usage"] = usage(reply);
    frames.push(Frame::bare(last));
    frames.push(Frame::bare("[DONE]"));
    frames
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for said in &reply.said {
        match said {
            Said::Text(more) => text.push_str(more),
            Said::Call { id, name, input } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            })),
            Said::Thinking { .. } | Said::Raw(_) => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut body = head(model, "chat.completion");
    body["choices"] = json!([{
        "index": 0,
        "message": message,
        "finish_reason": super::stop(reply, "tool_calls", "stop"),
    }]);
    body["usage"] = usage(reply);
    body
}

pub(super) fn overloaded() -> Frame {
    Frame::bare(json!({
        "error": {"message": "The server is overloaded", "type": "server_error", "code": 503},
    }))
}

fn head(model: &str, object: &str) -> Value {
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
