//! What can go wrong, and how each provider says so.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ProviderApi;

/// What goes wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection breaks after so many pieces.
    #[serde(rename = "cut")]
    Disconnect {
        /// How many pieces arrive.
        after: usize,
    },
    /// The answer ends after so many pieces without saying that it does.
    #[serde(rename = "ends")]
    EndEarly {
        /// How many pieces arrive.
        after: usize,
    },
    /// After so many pieces, nothing more comes.
    #[serde(rename = "stalls")]
    Stall {
        /// How many pieces arrive.
        after: usize,
    },
    /// After so many pieces, the provider tells of an error of its own.
    Overloaded {
        /// How many pieces arrive.
        after: usize,
    },
    /// Not even the head of an answer comes.
    #[serde(rename = "hangs")]
    Hang,
    /// Fewer requests, please.
    RateLimited {
        /// The `retry-after` header.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// The server is broken: any status.
    Status(u16),
    /// The events are no JSON.
    BadJson,
    /// What comes is a page for people.
    #[serde(rename = "not_events")]
    HtmlPage,
    /// The key is not known.
    WrongKey,
    /// The request is longer than the model takes.
    TooLong,
    /// There is no such model.
    NoSuchModel,
    /// The server cannot be held to JSON.
    #[serde(rename = "no_json")]
    NoJsonMode,
}

/// An error in place of an answer.
pub(crate) struct ErrorResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Fault {
    /// The error this is, where there is no answer at all.
    pub(crate) fn error_response(&self, wire: ProviderApi, model: &str) -> Option<ErrorResponse> {
        let refused = |status, kind: &str, code: Value, message: &str| {
            Some(ErrorResponse {
                status,
                headers: Vec::new(),
                body: error_body(wire, status, kind, &code, message).to_string(),
            })
        };
        match (self, wire) {
            (
                Self::Disconnect { .. }
                | Self::EndEarly { .. }
                | Self::Stall { .. }
                | Self::Overloaded { .. }
                | Self::Hang
                | Self::BadJson
                | Self::HtmlPage,
                _,
            ) => None,
            (Self::RateLimited { retry_after }, _) => {
                let kind = match wire {
                    ProviderApi::Gemini => "RESOURCE_EXHAUSTED",
                    _ => "rate_limit_error",
                };
                let refusal = refused(429, kind, Value::Null, "Too many requests");
                refusal.map(|mut refusal| {
                    let wait = retry_after.clone().map(|wait| ("retry-after", wait));
                    refusal.headers.extend(wait);
                    refusal
                })
            }
            (Self::Status(status), _) => refused(
                *status,
                "api_error",
                Value::Null,
                "Something is broken here",
            ),
            (Self::WrongKey, ProviderApi::Anthropic) => refused(
                401,
                "authentication_error",
                Value::Null,
                "invalid x-api-key",
            ),
            (
                Self::WrongKey,
                ProviderApi::Chat | ProviderApi::Responses | ProviderApi::Embeddings,
            ) => refused(
                401,
                "invalid_request_error",
                json!("invalid_api_key"),
                "Incorrect API key provided: sk-***",
            ),
            (Self::WrongKey, ProviderApi::Gemini) => refused(
                400,
                "INVALID_ARGUMENT",
                Value::Null,
                "API key not valid. Please pass a valid API key.",
            ),
            (Self::TooLong, ProviderApi::Gemini) => refused(
                400,
                "INVALID_ARGUMENT",
                Value::Null,
                "The input token count (215431) exceeds the maximum number of tokens allowed \
                 (200000).",
            ),
            (Self::NoSuchModel, ProviderApi::Gemini) => refused(
                404,
                "NOT_FOUND",
                Value::Null,
                &format!("models/{model} is not found for API version v1beta"),
            ),
            (Self::TooLong, ProviderApi::Anthropic) => refused(
                400,
                "invalid_request_error",
                Value::Null,
                "prompt is too long: 215431 tokens > 200000 maximum",
            ),
            (
                Self::TooLong,
                ProviderApi::Chat | ProviderApi::Responses | ProviderApi::Embeddings,
            ) => refused(
                400,
                "invalid_request_error",
                json!("context_length_exceeded"),
                "This model's maximum context length is 200000 tokens. However, your messages \
                 resulted in 215431 tokens. Please reduce the length of the messages.",
            ),
            (Self::NoSuchModel, ProviderApi::Anthropic) => refused(
                404,
                "not_found_error",
                Value::Null,
                &format!("model: {model}"),
            ),
            (
                Self::NoSuchModel,
                ProviderApi::Chat | ProviderApi::Responses | ProviderApi::Embeddings,
            ) => refused(
                404,
                "invalid_request_error",
                json!("model_not_found"),
                &format!("The model `{model}` does not exist or you do not have access to it."),
            ),
            (Self::NoJsonMode, _) => refused(
                400,
                "invalid_request_error",
                Value::Null,
                "'response_format.type' must be 'json_schema' or 'text'",
            ),
        }
    }

    /// After how many pieces it goes wrong.
    pub(crate) fn after(&self) -> Option<usize> {
        match self {
            Self::Disconnect { after }
            | Self::EndEarly { after }
            | Self::Stall { after }
            | Self::Overloaded { after } => Some(*after),
            _ => None,
        }
    }
}

/// An error as the wire writes it.
fn error_body(wire: ProviderApi, status: u16, kind: &str, code: &Value, message: &str) -> Value {
    match wire {
        ProviderApi::Anthropic => json!({
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_stand_in",
        }),
        ProviderApi::Chat | ProviderApi::Responses | ProviderApi::Embeddings => json!({
            "error": {"message": message, "type": kind, "param": null, "code": code},
        }),
        ProviderApi::Gemini => json!({
            "error": {"code": status, "message": message, "status": kind},
        }),
    }
}
