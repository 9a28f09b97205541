//! Google's Gemini.

use serde_json::{Value, json};

use crate::frame::{Frame, pieces};
use crate::{Reply, Said};

pub(super) fn frames(reply: &Reply, model: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = reply
        .said
        .iter()
        .flat_map(|said| match said {
            Said::Text(text) => pieces(text)
                .into_iter()
                .map(|text| json!({"text": text}))
                .collect(),
            other => vec![part(other)],
        })
        .map(|part| Frame::bare(chunk(&[part], None, reply, model)).piece())
        .collect();
    frames.push(Frame::bare(chunk(&[], Some(stop(reply)), reply, model)));
    frames
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let parts: Vec<Value> = reply.said.iter().map(part).collect();
    chunk(&parts, Some(stop(reply)), reply, model)
}

pub(super) fn overloaded() -> Frame {
    Frame::bare(json!({
        "error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"},
    }))
}

fn stop(reply: &Reply) -> &str {
    super::stop(reply, "STOP", "STOP")
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

fn part(said: &Said) -> Value {
    match said {
        Said::Text(text) => json!({"text": text}),
        Said::Thinking { text, signature } => {
            json!({"text": text, "thought": true, "thoughtSignature": signature})
        }
        // It gives calls no ids.
        Said::Call { name, input, .. } => json!({"functionCall": {"name": name, "args": input}}),
        Said::Raw(part) => part.clone(),
    }
}
