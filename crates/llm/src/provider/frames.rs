//! What a provider's raw frames say that the client passes over.
//!
//! The client reads frames into events and drops what it does not know. Each frame is
//! seen here first: blocks of server tools are kept as foreign ones, encrypted
//! reasoning as signed thinking, and the end of a stream is told from its breaking off.

use std::sync::{Mutex, PoisonError};

use genai::chat::RawFrameRef;
use serde_json::Value;
use throughline_model::{Block, Json, Usage};

use super::Wire;

/// What the frames of one answer have said so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Blocks that no event tells of, since they were last taken.
    pub(super) blocks: Vec<Block>,
    /// How many blocks have begun, where the provider numbers them.
    pub(super) begun: u64,
    /// The model as the provider named it.
    pub(super) model: Option<String>,
    /// Tokens, as far as reported.
    pub(super) usage: Option<Usage>,
    /// How far the stream got.
    pub(super) reached: Reached,
    /// What the model said in refusal.
    pub(super) refusal: String,
    /// Whether the last frame is one that the client stumbles over.
    pub(super) passed_over: bool,
    /// A block of the server's tools that is not whole yet.
    open: Option<Open>,
}

/// How far a stream got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reached {
    /// Nothing has made sense so far.
    #[default]
    Nothing,
    /// It has begun.
    Begun,
    /// The provider said that this is the end.
    End,
    /// Something in it is no JSON, so that something may be missing.
    Garbled,
}

impl Seen {
    fn reach(&mut self, further: Reached) {
        match (self.reached, further) {
            (Reached::Garbled, _) | (Reached::End, Reached::Begun) => {}
            _ => self.reached = further,
        }
    }
}

#[derive(Debug)]
struct Open {
    block: Value,
    input: String,
}

/// Watches the frames of one answer.
#[derive(Debug)]
pub(super) struct Frames {
    wire: Wire,
    seen: Mutex<Seen>,
}

impl Frames {
    pub(super) fn of(wire: Wire) -> Self {
        Self {
            wire,
            seen: Mutex::default(),
        }
    }

    /// Looks at what was seen.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the next frame.
    pub(super) fn take(&self, frame: RawFrameRef<'_>) {
        self.with(|seen| {
            seen.passed_over = false;
            if self.wire == Wire::Chat && frame.data == "[DONE]" {
                seen.reach(Reached::End);
                return;
            }
            let Some(data) = frame.json() else {
                if !frame.data.is_empty() {
                    seen.reach(Reached::Garbled);
                }
                return;
            };
            if data.is_object() {
                seen.reach(Reached::Begun);
            }
            match self.wire {
                Wire::Anthropic => anthropic(seen, frame.event.unwrap_or_default(), &data),
                Wire::Chat => chat(seen, &data),
                Wire::Responses => responses(seen, &data),
                Wire::Gemini => gemini(seen, &data),
            }
        });
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn anthropic(seen: &mut Seen, event: &str, data: &Value) {
    match event {
        "message_start" => {
            seen.model = text_of(&data["message"]["model"]);
            count(seen, &data["message"]["usage"]);
        }
        "content_block_start" => {
            seen.begun += 1;
            let block = &data["content_block"];
            let known = matches!(
                block["type"].as_str(),
                Some("text" | "thinking" | "tool_use")
            );
            seen.open = (!known).then(|| Open {
                block: block.clone(),
                input: String::new(),
            });
        }
        "content_block_delta" => {
            let delta = &data["delta"];
            seen.passed_over = seen.open.is_some() || delta["type"] == "citations_delta";
            if let (Some(open), Some(part)) = (&mut seen.open, delta["partial_json"].as_str()) {
                open.input.push_str(part);
            }
        }
        "content_block_stop" => {
            if let Some(Open { mut block, input }) = seen.open.take() {
                if let Ok(input) = serde_json::from_str(&input) {
                    block["input"] = input;
                }
                seen.blocks.extend(foreign(&block));
            }
        }
        "message_delta" => count(seen, &data["usage"]),
        "message_stop" => seen.reach(Reached::End),
        _ => {}
    }
}

/// A block as it came, safe from being taken for one of ours.
fn foreign(block: &Value) -> Option<Block> {
    Json::of(block).ok().map(Block::verbatim)
}

/// Anthropic counts cached tokens apart from the others.
fn count(seen: &mut Seen, usage: &Value) {
    let known = seen.usage.get_or_insert_default();
    let tokens = |name: &str| usage[name].as_u64();
    if let Some(read) = tokens("cache_read_input_tokens") {
        known.input = known
            .input
            .saturating_sub(known.cache_read)
            .saturating_add(read);
        known.cache_read = read;
    }
    if let Some(written) = tokens("cache_creation_input_tokens") {
        known.input = known
            .input
            .saturating_sub(known.cache_write)
            .saturating_add(written);
        known.cache_write = written;
    }
    if let Some(fresh) = tokens("input_tokens") {
        known.input = fresh
            .saturating_add(known.cache_read)
            .saturating_add(known.cache_write);
    }
    if let Some(output) = tokens("output_tokens") {
        known.output = output;
    }
}

fn chat(seen: &mut Seen, data: &Value) {
    if seen.model.is_none() {
        seen.model = text_of(&data["model"]);
    }
    let choice = &data["choices"][0];
    if choice["finish_reason"].is_string() {
        seen.reach(Reached::End);
    }
    if let Some(refusal) = choice["delta"]["refusal"].as_str() {
        seen.refusal.push_str(refusal);
    }
}

fn responses(seen: &mut Seen, data: &Value) {
    match data["type"].as_str() {
        Some("response.created") => seen.model = text_of(&data["response"]["model"]),
        Some("response.refusal.delta") => {
            seen.refusal
                .push_str(data["delta"].as_str().unwrap_or_default());
        }
        Some("response.output_item.done") => {
            let item = &data["item"];
            match item["type"].as_str() {
                Some("reasoning") => seen.blocks.extend(reasoning(item)),
                Some("message" | "function_call") | None => {}
                Some(_) => seen.blocks.extend(foreign(item)),
            }
        }
        Some("response.completed" | "response.incomplete") => seen.reach(Reached::End),
        _ => {}
    }
}

fn reasoning(item: &Value) -> Option<Block> {
    let signature = text_of(&item["encrypted_content"]);
    let parts = item["summary"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    let text = texts.join("\n\n");
    (signature.is_some() || !text.is_empty()).then_some(Block::Thinking { text, signature })
}

fn gemini(seen: &mut Seen, data: &Value) {
    if seen.model.is_none() {
        seen.model = text_of(&data["modelVersion"]);
    }
    let tokens = |name: &str| data["usageMetadata"][name].as_u64();
    if let Some(input) = tokens("promptTokenCount") {
        let thought = tokens("thoughtsTokenCount").unwrap_or(0);
        seen.usage = Some(Usage {
            input,
            output: tokens("candidatesTokenCount")
                .unwrap_or(0)
                .saturating_add(thought),
            cache_read: tokens("cachedContentTokenCount").unwrap_or(0),
            cache_write: 0,
        });
    }
    if data["candidates"][0]["finishReason"].is_string() {
        seen.reach(Reached::End);
    }
}
