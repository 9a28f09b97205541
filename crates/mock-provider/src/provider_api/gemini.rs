//! Google's Gemini API.

use serde_json::{Value, json};

use crate::sse_frame::{SseFrame, split_deltas};
use crate::{Reply, ReplyBlock};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<SseFrame> {
    let mut frames: Vec<SseFrame> = reply
        .blocks
        .iter()
        .flat_map(|block| match block {
            ReplyBlock::Text(text) => split_deltas(text)
                .into_iter()
                .map(|text| json!({"text": text}))
                .collect(),
            other => vec![to_part(other)],
        })
        .map(|part| SseFrame::unnamed(chunk(&[part], None, reply, model)).into_delta())
        .collect();
    frames.push(SseFrame::unnamed(chunk(
        &[],
        Some(stop_reason(reply)),
        reply,
        model,
    )));
    frames
}

pub(super) fn body(reply: &Reply, model: &str) -> Value {
    let parts: Vec<Value> = reply.blocks.iter().map(to_part).collect();
    chunk(&parts, Some(stop_reason(reply)), reply, model)
}

pub(super) fn overloaded_frame() -> SseFrame {
    SseFrame::unnamed(json!({
        "error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"},
    }))
}

fn stop_reason(reply: &Reply) -> &str {
    super::stop_reason(reply, "STOP", "STOP")
}

fn chunk(parts: &[Value], reason: Option<&str>, reply: &Reply, model: &str) -> Value {
    let tokens = reply.usage;
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(reason) = reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "candidates": [candidate],
        "modelVersion": model,
        "usageMetadata": {
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cache_read,
            "candidatesTokenCount": tokens.output,
            "totalTokenCount": tokens.input + tokens.output,
        },
    })
}

fn to_part(block: &ReplyBlock) -> Value {
    match block {
        ReplyBlock::Text(text) => json!({"text": text}),
        ReplyBlock::Thinking { text, signature } => {
            json!({"text": text, "thought": true, "thoughtSignature": signature})
        }
        // Gemini does not assign ids to calls.
        ReplyBlock::Call { name, input, .. } => {
            json!({"functionCall": {"name": name, "args": input}})
        }
        ReplyBlock::Raw(part) => part.clone(),
    }
}
