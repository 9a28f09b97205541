//! The requests that the mock provider received.
//!
//! Invariant: API keys are checked and never stored.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ProviderApi;

/// A received request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The path of the request.
    pub path: String,
    /// The API at that path.
    pub api: ProviderApi,
    /// The headers, without API keys.
    pub headers: BTreeMap<String, String>,
    /// Whether it had an API key.
    pub has_key: bool,
    /// The request body.
    pub body: Value,
}

/// Headers that contain API keys.
pub(crate) const KEY_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

impl Request {
    /// Returns the requested model.
    pub fn model(&self) -> &str {
        let in_path = || self.path.rsplit('/').next()?.split_once(':');
        match self.api {
            ProviderApi::Gemini => in_path().map_or("stand-in", |(model, _)| model),
            _ => self.body["model"].as_str().unwrap_or("stand-in"),
        }
    }

    /// Returns whether a streaming reply is requested.
    pub fn is_streaming(&self) -> bool {
        self.body["stream"] == true || self.path.contains(":streamGenerateContent")
    }

    /// Returns all system instructions.
    pub fn system(&self) -> String {
        let in_messages = self
            .messages()
            .iter()
            .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")));
        let aside = ["system", "instructions", "systemInstruction"];
        let aside = aside.map(|name| extract_text(&self.body[name]));
        aside
            .into_iter()
            .chain(in_messages.map(|message| extract_text(&message["content"])))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// Returns the text of the last user message.
    pub fn last_user_text(&self) -> String {
        let mut texts = self.messages().iter().rev().filter_map(|message| {
            let is_user = message["role"] == "user";
            let text = extract_text(message.get("content").unwrap_or(message));
            (is_user && !text.is_empty()).then_some(text)
        });
        texts.next().unwrap_or_default()
    }

    /// Returns the texts to embed.
    pub fn texts(&self) -> Vec<&str> {
        match &self.body["input"] {
            Value::String(text) => vec![text],
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    fn messages(&self) -> &[Value] {
        let messages = match self.api {
            ProviderApi::Anthropic | ProviderApi::Chat => &self.body["messages"],
            ProviderApi::Responses => &self.body["input"],
            ProviderApi::Gemini => &self.body["contents"],
            ProviderApi::Embeddings => &Value::Null,
        };
        messages.as_array().map_or(&[], Vec::as_slice)
    }
}

/// Returns a text, or the texts of a list of blocks.
fn extract_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n\n"),
        Value::Object(members) => members.get("parts").map(extract_text).unwrap_or_default(),
        _ => String::new(),
    }
}
