//! Extracts from a provider's raw frames what the genai client ignores.
//!
//! The client turns frames into events and drops those it does not know. Each frame is
//! observed here first: blocks of server tools are stored as foreign blocks, encrypted
//! reasoning as signed thinking, and a complete stream is distinguished from an interrupted
//! one.

use std::sync::{Mutex, PoisonError};

use genai::chat::RawFrameRef;
use serde_json::Value;
use throughline_model::{Block, Json, Usage};

use super::ApiProtocol;

/// What was extracted from the frames of one answer so far.
#[derive(Debug, Default)]
pub(super) struct FrameState {
    /// Blocks without an event, not yet added to the answer.
    pub(super) blocks: Vec<Block>,
    /// Number of blocks started, if the provider numbers them.
    pub(super) blocks_started: u64,
    /// The model name reported by the provider.
    pub(super) model: Option<String>,
    /// Token usage, as far as reported.
    pub(super) usage: Option<Usage>,
    /// How far the stream has progressed.
    pub(super) progress: StreamProgress,
    /// The text of the model's refusal.
    pub(super) refusal: String,
    /// Whether the client fails on the last frame.
    pub(super) is_unknown_to_client: bool,
    /// A server tool's block that is still incomplete.
    partial_block: Option<PartialBlock>,
}

/// How far a stream has progressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StreamProgress {
    /// No valid frame so far.
    #[default]
    NotStarted,
    /// At least one valid frame.
    Started,
    /// The provider marked the end.
    Finished,
    /// A frame was not valid JSON, so part of the answer may be missing.
    Corrupt,
}

impl FrameState {
    fn advance(&mut self, further: StreamProgress) {
        match (self.progress, further) {
            (StreamProgress::Corrupt, _) | (StreamProgress::Finished, StreamProgress::Started) => {}
            _ => self.progress = further,
        }
    }
}

#[derive(Debug)]
struct PartialBlock {
    block: Value,
    input: String,
}

/// Observes the frames of one answer.
#[derive(Debug)]
pub(super) struct FrameObserver {
    protocol: ApiProtocol,
    state: Mutex<FrameState>,
}

impl FrameObserver {
    pub(super) fn new(protocol: ApiProtocol) -> Self {
        Self {
            protocol,
            state: Mutex::default(),
        }
    }

    /// Gives access to the state.
    pub(super) fn with_state<T>(&self, look: impl FnOnce(&mut FrameState) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Processes the next frame.
    pub(super) fn observe(&self, frame: RawFrameRef<'_>) {
        self.with_state(|seen| {
            seen.is_unknown_to_client = false;
            if self.protocol == ApiProtocol::Chat && frame.data == "[DONE]" {
                seen.advance(StreamProgress::Finished);
                return;
            }
            let Some(data) = frame.json() else {
                if !frame.data.is_empty() {
                    seen.advance(StreamProgress::Corrupt);
                }
                return;
            };
            if data.is_object() {
                seen.advance(StreamProgress::Started);
            }
            match self.protocol {
                ApiProtocol::Anthropic => {
                    observe_anthropic(seen, frame.event.unwrap_or_default(), &data);
                }
                ApiProtocol::Chat => observe_chat(seen, &data),
                ApiProtocol::Responses => observe_responses(seen, &data),
                ApiProtocol::Gemini => observe_gemini(seen, &data),
            }
        });
    }
}

fn to_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn observe_anthropic(seen: &mut FrameState, event: &str, data: &Value) {
    match event {
        "message_start" => {
            seen.model = to_text(&data["message"]["model"]);
            update_usage(seen, &data["message"]["usage"]);
        }
        "content_block_start" => {
            seen.blocks_started += 1;
            let block = &data["content_block"];
            let known = matches!(
                block["type"].as_str(),
                Some("text" | "thinking" | "tool_use")
            );
            seen.partial_block = (!known).then(|| PartialBlock {
                block: block.clone(),
                input: String::new(),
            });
        }
        "content_block_delta" => {
            let delta = &data["delta"];
            seen.is_unknown_to_client =
                seen.partial_block.is_some() || delta["type"] == "citations_delta";
            if let (Some(open), Some(part)) =
                (&mut seen.partial_block, delta["partial_json"].as_str())
            {
                open.input.push_str(part);
            }
        }
        "content_block_stop" => {
            if let Some(PartialBlock { mut block, input }) = seen.partial_block.take() {
                if let Ok(input) = serde_json::from_str(&input) {
                    block["input"] = input;
                }
                seen.blocks.extend(to_foreign_block(&block));
            }
        }
        "message_delta" => update_usage(seen, &data["usage"]),
        "message_stop" => seen.advance(StreamProgress::Finished),
        _ => {}
    }
}

/// Wraps a block as foreign, so that it is never mistaken for one of our own.
fn to_foreign_block(block: &Value) -> Option<Block> {
    Json::of(block).ok().map(Block::from_foreign)
}

/// Updates the usage. Anthropic does not include cached tokens in `input_tokens`; we do.
fn update_usage(seen: &mut FrameState, usage: &Value) {
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

fn observe_chat(seen: &mut FrameState, data: &Value) {
    if seen.model.is_none() {
        seen.model = to_text(&data["model"]);
    }
    let choice = &data["choices"][0];
    if choice["finish_reason"].is_string() {
        seen.advance(StreamProgress::Finished);
    }
    if let Some(refusal) = choice["delta"]["refusal"].as_str() {
        seen.refusal.push_str(refusal);
    }
}

fn observe_responses(seen: &mut FrameState, data: &Value) {
    match data["type"].as_str() {
        Some("response.created") => seen.model = to_text(&data["response"]["model"]),
        Some("response.refusal.delta") => {
            seen.refusal
                .push_str(data["delta"].as_str().unwrap_or_default());
        }
        Some("response.output_item.done") => {
            let item = &data["item"];
            match item["type"].as_str() {
                Some("reasoning") => seen.blocks.extend(to_thinking_block(item)),
                Some("message" | "function_call") | None => {}
                Some(_) => seen.blocks.extend(to_foreign_block(item)),
            }
        }
        Some("response.completed" | "response.incomplete") => {
            seen.advance(StreamProgress::Finished);
        }
        _ => {}
    }
}

fn to_thinking_block(item: &Value) -> Option<Block> {
    let signature = to_text(&item["encrypted_content"]);
    let parts = item["summary"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    let text = texts.join("\n\n");
    (signature.is_some() || !text.is_empty()).then_some(Block::Thinking { text, signature })
}

fn observe_gemini(seen: &mut FrameState, data: &Value) {
    if seen.model.is_none() {
        seen.model = to_text(&data["modelVersion"]);
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
        seen.advance(StreamProgress::Finished);
    }
}
