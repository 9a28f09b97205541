//! An answer, put together from what arrives.
//!
//! Invariant: a tool call is told once, when it is whole, and half a call is none.

use genai::chat::{ChatStreamEvent, StopReason, StreamEnd, ToolCall as Call};
use serde_json::Value;
use throughline_model::{Block, Content, Json, ToolCall, Usage};

use super::frames::Seen;
use crate::{Delta, Stop};

/// A piece of the answer.
#[derive(Debug)]
enum Piece {
    Whole(Block),
    Call { call: Call, told: bool },
}

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pieces: Vec<Piece>,
    /// The provider's number of the block that the last piece is of.
    block: u64,
    /// Whether anything was told.
    pub(super) told: bool,
    /// Tokens, once they are reported.
    pub(super) usage: Option<Usage>,
    stop: Option<StopReason>,
}

impl Gathered {
    /// Takes the next event, after what the frames before it said.
    pub(super) fn take(
        &mut self,
        event: ChatStreamEvent,
        seen: &mut Seen,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) {
        self.take_seen(seen, tell);
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.finish_calls(tell, false);
                self.text(&chunk.content);
                self.tell(Delta::Text(chunk.content), tell);
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                self.finish_calls(tell, false);
                self.thinking(&chunk.content, seen.begun);
                self.tell(Delta::Thinking(chunk.content), tell);
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                self.finish_calls(tell, false);
                self.signature(&chunk.content, seen.begun);
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.call(chunk.tool_call, tell),
            ChatStreamEvent::End(end) => self.end(end),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_) => {}
        }
        self.block = seen.begun;
    }

    /// Takes the blocks that only the frames tell of.
    pub(super) fn take_seen(&mut self, seen: &mut Seen, tell: &mut (dyn FnMut(Delta) + Send)) {
        for block in seen.blocks.drain(..) {
            self.finish_calls(tell, false);
            match (self.pieces.last_mut(), block) {
                // The same thought, now signed.
                (
                    Some(Piece::Whole(Block::Thinking {
                        signature: unsigned @ None,
                        ..
                    })),
                    Block::Thinking { signature, .. },
                ) => *unsigned = signature,
                (_, block) => self.pieces.push(Piece::Whole(block)),
            }
        }
    }

    fn tell(&mut self, delta: Delta, tell: &mut (dyn FnMut(Delta) + Send)) {
        self.told = true;
        tell(delta);
    }

    fn text(&mut self, more: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Whole(Block::Text(text))) => text.push_str(more),
            _ => self.pieces.push(Piece::Whole(Block::Text(more.to_owned()))),
        }
    }

    fn thinking(&mut self, more: &str, block: u64) {
        match self.pieces.last_mut() {
            Some(Piece::Whole(Block::Thinking { text, signature }))
                if self.block == block && (signature.is_none() || text.is_empty()) =>
            {
                text.push_str(more);
            }
            _ => self.pieces.push(Piece::Whole(Block::Thinking {
                text: more.to_owned(),
                signature: None,
            })),
        }
    }

    fn signature(&mut self, more: &str, block: u64) {
        match self.pieces.last_mut() {
            // Only who numbers blocks sends signatures in parts.
            Some(Piece::Whole(Block::Thinking { signature, .. }))
                if self.block == block && (block > 0 || signature.is_none()) =>
            {
                signature.get_or_insert_default().push_str(more);
            }
            _ => self.pieces.push(Piece::Whole(Block::Thinking {
                text: String::new(),
                signature: Some(more.to_owned()),
            })),
        }
    }

    /// Chunks of a call say all of it so far.
    fn call(&mut self, mut new: Call, tell: &mut (dyn FnMut(Delta) + Send)) {
        let id = new.call_id.clone();
        let known = self.pieces.iter_mut().find_map(|piece| match piece {
            Piece::Call { call, .. } if call.call_id == id => Some(call),
            _ => None,
        });
        match known {
            Some(call) if new.fn_arguments.is_string() => {
                *call = new;
                return;
            }
            // Another call, by a provider that gives calls no ids.
            Some(_) => new.call_id = format!("{id}#{}", self.pieces.len()),
            None => {}
        }
        self.finish_calls(tell, false);
        self.pieces.push(Piece::Call {
            call: new,
            told: false,
        });
    }

    /// Tells of the calls that are whole now that something else has begun.
    fn finish_calls(&mut self, tell: &mut (dyn FnMut(Delta) + Send), at_the_end: bool) {
        for piece in &mut self.pieces {
            if let Piece::Call { call, told } = piece
                && !*told
                && let Some(whole) = whole(call, at_the_end)
            {
                *told = true;
                self.told = true;
                tell(Delta::ToolCall(whole));
            }
        }
    }

    fn end(&mut self, end: StreamEnd) {
        self.usage = end.captured_usage.as_ref().and_then(usage);
        self.stop = end.captured_stop_reason;
    }

    /// What arrived of an answer that broke off.
    pub(super) fn so_far(mut self) -> Content {
        // The last call may be longer than it seems.
        if let Some(Piece::Call { told: false, .. }) = self.pieces.last() {
            self.pieces.pop();
        }
        content(self.pieces, false)
    }

    /// The whole answer, and why it ended.
    pub(super) fn finish(
        mut self,
        refusal: &str,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> (Content, Stop) {
        let is_long = matches!(self.stop, Some(StopReason::MaxTokens(_)));
        self.finish_calls(tell, !is_long);
        if !refusal.is_empty() {
            self.text(refusal);
            self.tell(Delta::Text(refusal.to_owned()), tell);
            return (content(self.pieces, true), Stop::Refused);
        }
        let content = content(self.pieces, !is_long);
        let calls = content.tool_calls().next().is_some();
        let stop = match self.stop {
            Some(StopReason::MaxTokens(_)) => Stop::Length,
            Some(StopReason::ContentFilter(_)) => Stop::Refused,
            Some(StopReason::Other(reason)) => Stop::Other(reason),
            Some(
                StopReason::ToolCall(_) | StopReason::Completed(_) | StopReason::StopSequence(_),
            )
            | None => {
                if calls {
                    Stop::ToolUse
                } else {
                    Stop::Finished
                }
            }
        };
        (content, stop)
    }
}

fn content(pieces: Vec<Piece>, at_the_end: bool) -> Content {
    let blocks = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Whole(block) => Some(block),
        Piece::Call { call, .. } => whole(&call, at_the_end).map(Block::ToolCall),
    });
    Content(blocks.collect())
}

/// The call, where its input is whole. At the end of an answer it is what it is: a model
/// that cannot write JSON is told so by the tool.
fn whole(call: &Call, at_the_end: bool) -> Option<ToolCall> {
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
fn usage(reported: &genai::chat::Usage) -> Option<Usage> {
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
