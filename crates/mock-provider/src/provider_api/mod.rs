//! The provider APIs that the mock server implements: paths, request formats and reply formats.

mod anthropic;
mod chat;
mod embeddings;
mod gemini;
mod responses;

use serde_json::Value;

use crate::sse_frame::SseFrame;
use crate::{Reply, ReplyBlock, Request};

/// A provider API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderApi {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Google's Gemini.
    Gemini,
    /// OpenAI's Embeddings.
    Embeddings,
}

impl ProviderApi {
    /// Returns the API at a path, whatever its prefix.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/embeddings") {
            Some(Self::Embeddings)
        } else if path.contains(":generateContent") || path.contains(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// Returns a reply as a stream of events.
    pub(crate) fn frames(self, reply: &Reply, model: &str) -> Vec<SseFrame> {
        match self {
            Self::Anthropic => anthropic::frames(reply, model),
            Self::Chat => chat::frames(reply, model),
            Self::Responses => responses::frames(reply, model),
            Self::Gemini => gemini::frames(reply, model),
            // Embeddings are never streamed.
            Self::Embeddings => Vec::new(),
        }
    }

    /// Returns a reply as one JSON object.
    pub(crate) fn body(self, reply: &Reply, request: &Request) -> Value {
        let model = request.model();
        match self {
            Self::Anthropic => anthropic::body(reply, model),
            Self::Chat => chat::body(reply, model),
            Self::Responses => responses::body(reply, model),
            Self::Gemini => gemini::body(reply, model),
            Self::Embeddings => embeddings::body(reply, request),
        }
    }

    /// Returns the event with which a provider reports an overload in the middle of a reply.
    pub(crate) fn overloaded_frame(self) -> SseFrame {
        match self {
            Self::Anthropic => anthropic::overloaded_frame(),
            Self::Chat | Self::Embeddings => chat::overloaded_frame(),
            Self::Responses => responses::overloaded_frame(),
            Self::Gemini => gemini::overloaded_frame(),
        }
    }
}

/// Returns the stop reason of a reply, if the script does not set one.
fn stop_reason<'a>(reply: &'a Reply, calls: &'a str, otherwise: &'a str) -> &'a str {
    let has_calls = reply
        .blocks
        .iter()
        .any(|block| matches!(block, ReplyBlock::Call { .. }));
    reply
        .stop
        .as_deref()
        .unwrap_or(if has_calls { calls } else { otherwise })
}
