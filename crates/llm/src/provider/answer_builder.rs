//! An answer, put together from what arrives.
//!
//! Invariant: a tool call is told once, when it is whole, and half a call is none.

use genai::chat::{ChatStreamEvent, StopReason, StreamEnd, ToolCall as Call};
use serde_json::Value;
use throughline_model::{Block, Content, Json, ToolCall, Usage};

use super::frames::FrameState;
use crate::{Delta, FinishReason};

/// A piece of the answer.
#[derive(Debug)]
enum AnswerPart {
    Block(Block),
    Call { call: Call, emitted: bool },
}

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct AnswerBuilder {
    parts: Vec<AnswerPart>,
    /// The provider's number of the block that the last piece is of.
    block: u64,
    /// Whether anything was told.
    pub(super) has_emitted: bool,
    /// Tokens, once they are reported.
    pub(super) usage: Option<Usage>,
    stop_reason: Option<StopReason>,
}

impl AnswerBuilder {
    /// Takes the next event, after what the frames before it said.
    pub(super) fn push_event(
        &mut self,
        event: ChatStreamEvent,
        seen: &mut FrameState,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) {
        self.push_frame_blocks(seen, tell);
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.emit_complete_calls(tell, false);
                self.push_text(&chunk.content);
                self.emit(Delta::Text(chunk.content), tell);
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                self.emit_complete_calls(tell, false);
                self.push_thinking(&chunk.content, seen.blocks_started);
                self.emit(Delta::Thinking(chunk.content), tell);
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                self.emit_complete_calls(tell, false);
                self.push_signature(&chunk.content, seen.blocks_started);
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.push_call(chunk.tool_call, tell),
            ChatStreamEvent::End(end) => self.record_end(end),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_) => {}
        }
        self.block = seen.blocks_started;
    }

    /// Takes the blocks that only the frames tell of.
    pub(super) fn push_frame_blocks(
        &mut self,
        seen: &mut FrameState,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) {
        for block in seen.blocks.drain(..) {
            self.emit_complete_calls(tell, false);
            match (self.parts.last_mut(), block) {
                // The same thought, now signed.
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

    fn emit(&mut self, delta: Delta, tell: &mut (dyn FnMut(Delta) + Send)) {
        self.has_emitted = true;
        tell(delta);
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
            // Only who numbers blocks sends signatures in parts.
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

    /// Chunks of a call say all of it so far.
    fn push_call(&mut self, mut new: Call, tell: &mut (dyn FnMut(Delta) + Send)) {
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
            // Another call, by a provider that gives calls no ids.
            Some(_) => new.call_id = format!("{id}#{}", self.parts.len()),
            None => {}
        }
        self.emit_complete_calls(tell, false);
        self.parts.push(AnswerPart::Call {
            call: new,
            emitted: false,
        });
    }

    /// Tells of the calls that are whole now that something else has begun.
    fn emit_complete_calls(&mut self, tell: &mut (dyn FnMut(Delta) + Send), at_the_end: bool) {
        for piece in &mut self.parts {
            if let AnswerPart::Call {
                call,
                emitted: told,
            } = piece
                && !*told
                && let Some(whole) = to_complete_call(call, at_the_end)
            {
                *told = true;
                self.has_emitted = true;
                tell(Delta::ToolCall(whole));
            }
        }
    }

    fn record_end(&mut self, end: StreamEnd) {
        self.usage = end.captured_usage.as_ref().and_then(convert_usage);
        self.stop_reason = end.captured_stop_reason;
    }

    /// What arrived of an answer that broke off.
    pub(super) fn into_partial(mut self) -> Content {
        // The last call may be longer than it seems.
        if let Some(AnswerPart::Call { emitted: false, .. }) = self.parts.last() {
            self.parts.pop();
        }
        to_content(self.parts, false)
    }

    /// The whole answer, and why it ended.
    pub(super) fn finish(
        mut self,
        refusal: &str,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> (Content, FinishReason) {
        let is_long = matches!(self.stop_reason, Some(StopReason::MaxTokens(_)));
        self.emit_complete_calls(tell, !is_long);
        if !refusal.is_empty() {
            self.push_text(refusal);
            self.emit(Delta::Text(refusal.to_owned()), tell);
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

/// The call, where its input is whole. At the end of an answer it is what it is: a model
/// that cannot write JSON is told so by the tool.
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

/// Tokens as we count them, where any were reported.
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
