//! Provider faults, and how each provider reports them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ProviderApi;

/// A fault to inject into a reply.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection breaks after some deltas.
    #[serde(rename = "cut")]
    Disconnect {
        /// How many deltas arrive.
        after: usize,
    },
    /// The reply ends after some deltas without its final event.
    #[serde(rename = "ends")]
    EndEarly {
        /// How many deltas arrive.
        after: usize,
    },
    /// Nothing more arrives after some deltas.
    #[serde(rename = "stalls")]
    Stall {
        /// How many deltas arrive.
        after: usize,
    },
    /// The provider reports an error in the stream after some deltas.
    Overloaded {
        /// How many deltas arrive.
        after: usize,
    },
    /// Not even the response headers arrive.
    #[serde(rename = "hangs")]
    Hang,
    /// The request is rate limited.
    RateLimited {
        /// The `retry-after` header.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// The server fails with this status.
    Status(u16),
    /// The events are not valid JSON.
    BadJson,
    /// The response is an HTML page.
    #[serde(rename = "not_events")]
    HtmlPage,
    /// The API key is rejected.
    WrongKey,
    /// The request exceeds the model's context window.
    TooLong,
    /// The model does not exist.
    NoSuchModel,
    /// The server does not support JSON mode.
    #[serde(rename = "no_json")]
    NoJsonMode,
}

/// An error response in place of a reply.
pub(crate) struct ErrorResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Fault {
    /// Returns the error response for a fault that prevents any reply.
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

    /// Returns the number of deltas before the fault.
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

/// Returns an error body in the provider's format.
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
