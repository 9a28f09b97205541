//! Assembles an answer from stream events and emits it as [`Delta`]s.
//!
//! Invariant: a tool call is emitted once, when it is complete; an incomplete call is
//! never part of an answer.

use genai::chat::{ChatStreamEvent, StopReason, StreamEnd, ToolCall as Call};
use serde_json::Value;
use throughline_model::{Block, Content, Json, ToolCall, Usage};

use super::frames::FrameState;
use crate::{Delta, FinishReason};

/// One part of the answer.
#[derive(Debug)]
enum AnswerPart {
    Block(Block),
    Call { call: Call, emitted: bool },
}

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct AnswerBuilder {
    parts: Vec<AnswerPart>,
    /// Number of the provider's block that the last part belongs to.
    block: u64,
    /// Whether anything was emitted.
    pub(super) has_emitted: bool,
    /// Token usage, once reported.
    pub(super) usage: Option<Usage>,
    stop_reason: Option<StopReason>,
}

impl AnswerBuilder {
    /// Adds the next event, after the blocks of the frames before it.
    pub(super) fn push_event(
        &mut self,
        event: ChatStreamEvent,
        seen: &mut FrameState,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) {
        self.push_frame_blocks(seen, on_delta);
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.emit_complete_calls(on_delta, false);
                self.push_text(&chunk.content);
                self.emit(Delta::Text(chunk.content), on_delta);
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                self.emit_complete_calls(on_delta, false);
                self.push_thinking(&chunk.content, seen.blocks_started);
                self.emit(Delta::Thinking(chunk.content), on_delta);
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                self.emit_complete_calls(on_delta, false);
                self.push_signature(&chunk.content, seen.blocks_started);
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.push_call(chunk.tool_call, on_delta),
            ChatStreamEvent::End(end) => self.record_end(end),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_) => {}
        }
        self.block = seen.blocks_started;
    }

    /// Adds the blocks that appear only in raw frames.
    pub(super) fn push_frame_blocks(
        &mut self,
        seen: &mut FrameState,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) {
        for block in seen.blocks.drain(..) {
            self.emit_complete_calls(on_delta, false);
            match (self.parts.last_mut(), block) {
                // The signature of the thinking block just received.
                (
                    Some(AnswerPart::Block(Block::Thinking {
                        signature: unsigned @ None,
                        ..
                    })),
                    Block::Thinking { signature, .. },
                ) => *unsigned = signature,
                (_, block) => self.parts.push(AnswerPart::Block(block)),
            }
        }
    }

    fn emit(&mut self, delta: Delta, on_delta: &mut (dyn FnMut(Delta) + Send)) {
        self.has_emitted = true;
        on_delta(delta);
    }

    fn push_text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(AnswerPart::Block(Block::Text(text))) => text.push_str(more),
            _ => self
                .parts
                .push(AnswerPart::Block(Block::Text(more.to_owned()))),
        }
    }

    fn push_thinking(&mut self, more: &str, block: u64) {
        match self.parts.last_mut() {
            Some(AnswerPart::Block(Block::Thinking { text, signature }))
                if self.block == block && (signature.is_none() || text.is_empty()) =>
            {
                text.push_str(more);
            }
            _ => self.parts.push(AnswerPart::Block(Block::Thinking {
                text: more.to_owned(),
                signature: None,
            })),
        }
    }

    fn push_signature(&mut self, more: &str, block: u64) {
        match self.parts.last_mut() {
            // Only providers that number their blocks send signatures in several chunks.
            Some(AnswerPart::Block(Block::Thinking { signature, .. }))
                if self.block == block && (block > 0 || signature.is_none()) =>
            {
                signature.get_or_insert_default().push_str(more);
            }
            _ => self.parts.push(AnswerPart::Block(Block::Thinking {
                text: String::new(),
                signature: Some(more.to_owned()),
            })),
        }
    }

    /// Adds a chunk of a tool call. Each chunk repeats the call so far.
    fn push_call(&mut self, mut new: Call, on_delta: &mut (dyn FnMut(Delta) + Send)) {
        let id = new.call_id.clone();
        let known = self.parts.iter_mut().find_map(|piece| match piece {
            AnswerPart::Call { call, .. } if call.call_id == id => Some(call),
            _ => None,
        });
        match known {
            Some(call) if new.fn_arguments.is_string() => {
                *call = new;
                return;
            }
            // A different call, from a provider that gives calls no ids.
            Some(_) => new.call_id = format!("{id}#{}", self.parts.len()),
            None => {}
        }
        self.emit_complete_calls(on_delta, false);
        self.parts.push(AnswerPart::Call {
            call: new,
            emitted: false,
        });
    }

    /// Emits the calls that are complete because another block has started.
    fn emit_complete_calls(&mut self, on_delta: &mut (dyn FnMut(Delta) + Send), at_the_end: bool) {
        for piece in &mut self.parts {
            if let AnswerPart::Call {
                call,
                emitted: was_emitted,
            } = piece
                && !*was_emitted
                && let Some(whole) = to_complete_call(call, at_the_end)
            {
                *was_emitted = true;
                self.has_emitted = true;
                on_delta(Delta::ToolCall(whole));
            }
        }
    }

    fn record_end(&mut self, end: StreamEnd) {
        self.usage = end.captured_usage.as_ref().and_then(convert_usage);
        self.stop_reason = end.captured_stop_reason;
    }

    /// Returns the content received before the answer was interrupted.
    pub(super) fn into_partial(mut self) -> Content {
        // The last call may be incomplete.
        if let Some(AnswerPart::Call { emitted: false, .. }) = self.parts.last() {
            self.parts.pop();
        }
        to_content(self.parts, false)
    }

    /// Returns the complete answer and its finish reason.
    pub(super) fn finish(
        mut self,
        refusal: &str,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> (Content, FinishReason) {
        let is_long = matches!(self.stop_reason, Some(StopReason::MaxTokens(_)));
        self.emit_complete_calls(on_delta, !is_long);
        if !refusal.is_empty() {
            self.push_text(refusal);
            self.emit(Delta::Text(refusal.to_owned()), on_delta);
            return (to_content(self.parts, true), FinishReason::Refused);
        }
        let content = to_content(self.parts, !is_long);
        let calls = content.tool_calls().next().is_some();
        let stop = match self.stop_reason {
            Some(StopReason::MaxTokens(_)) => FinishReason::Length,
            Some(StopReason::ContentFilter(_)) => FinishReason::Refused,
            Some(StopReason::Other(reason)) => FinishReason::Other(reason),
            Some(
                StopReason::ToolCall(_) | StopReason::Completed(_) | StopReason::StopSequence(_),
            )
            | None => {
                if calls {
                    FinishReason::ToolUse
                } else {
                    FinishReason::Completed
                }
            }
        };
        (content, stop)
    }
}

fn to_content(pieces: Vec<AnswerPart>, at_the_end: bool) -> Content {
    let blocks = pieces.into_iter().filter_map(|piece| match piece {
        AnswerPart::Block(block) => Some(block),
        AnswerPart::Call { call, .. } => to_complete_call(&call, at_the_end).map(Block::ToolCall),
    });
    Content(blocks.collect())
}

/// Converts a call if its input is complete. At the end of an answer, input that is not
/// valid JSON is passed on as text, so that the tool can report the error to the model.
fn to_complete_call(call: &Call, at_the_end: bool) -> Option<ToolCall> {
    let input = match &call.fn_arguments {
        Value::String(text) if text.trim().is_empty() => Json::parse("{}"),
        Value::String(text) => match Json::parse(text.clone()) {
            Err(_) if at_the_end => Json::of(text),
            parsed => parsed,
        },
        Value::Null => Json::parse("{}"),
        value => Json::of(value),
    };
    Some(ToolCall {
        id: call.call_id.clone(),
        name: call.fn_name.clone(),
        input: input.ok()?,
    })
}

/// Converts token counts; returns `None` if none were reported.
fn convert_usage(reported: &genai::chat::Usage) -> Option<Usage> {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let details = reported.prompt_tokens_details.as_ref();
    let (input, output) = (
        count(reported.prompt_tokens),
        count(reported.completion_tokens),
    );
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(Usage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cache_read: count(details.and_then(|details| details.cached_tokens)).unwrap_or(0),
        cache_write: count(details.and_then(|details| details.cache_creation_tokens)).unwrap_or(0),
    })
}
