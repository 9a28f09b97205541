//! Classifies the errors of one request attempt.
//!
//! Providers report the same problem in different ways. Each response is mapped here, once,
//! to a [`ModelError`] that tells the user what to do, and to whether a retry may help.
//!
//! Invariant: errors never contain the endpoint's URL or API key.

use std::error::Error;
use std::time::Duration;

use genai::webc::StreamTimeout;
use serde_json::Value;

use super::context_overflow::parse_context_overflow;
use crate::{BoxError, ModelEndpoint, ModelError};

/// A failed attempt.
#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) error: ModelError,
    /// Whether a retry may succeed.
    pub(super) is_transient: bool,
    /// How long the provider asked us to wait.
    pub(super) retry_after: Option<Duration>,
    /// Whether the provider does not support JSON mode.
    pub(super) rejects_json_mode: bool,
}

impl AttemptError {
    /// An error that is not worth a retry.
    pub(super) fn permanent(error: ModelError) -> Self {
        Self {
            error,
            is_transient: false,
            retry_after: None,
            rejects_json_mode: false,
        }
    }

    fn transient(error: ModelError) -> Self {
        Self {
            is_transient: true,
            ..Self::permanent(error)
        }
    }

    /// The stream ended before the answer did.
    pub(super) fn interrupted(why: &str) -> Self {
        Self::transient(ModelError::Interrupted {
            source: BoxError::from(why),
        })
    }

    /// Classifies an error of the genai client.
    pub(super) fn from_client(error: genai::Error, at: &ModelEndpoint) -> Self {
        match error {
            genai::Error::HttpError {
                status,
                body,
                headers,
                ..
            } => {
                let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
                let wait = parse_retry_after(header("retry-after-ms"), header("retry-after"));
                classify_status(status.as_u16(), &body, wait, at)
            }
            genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
                Ok(inner) => Self::from_client(*inner, at),
                Err(error) => classify_network_error(error, at),
            },
            genai::Error::WebModelCall { webc_error, .. } => classify_call_error(webc_error, at),
            // The provider reported an error after it had started to answer.
            genai::Error::ChatResponse { body, .. } => classify_error_event(&body, at),
            genai::Error::StreamParse { serde_error, .. } => {
                Self::permanent(invalid_response(at, &serde_error.to_string()))
            }
            other => Self::permanent(invalid_response(
                at,
                &sanitize_message(&other.to_string(), at),
            )),
        }
    }
}

/// Classifies an error of a request that is not streamed.
fn classify_call_error(error: genai::webc::Error, at: &ModelEndpoint) -> AttemptError {
    use genai::webc::Error as E;
    match error {
        E::ResponseFailedStatus {
            status,
            body,
            headers,
        } => {
            let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
            let wait = parse_retry_after(header("retry-after-ms"), header("retry-after"));
            classify_status(status.as_u16(), &body, wait, at)
        }
        E::Reqwest(error) => classify_network_error(error.into(), at),
        E::ResponseFailedNotJson { .. } | E::ResponseFailedInvalidJson { .. } => {
            AttemptError::permanent(invalid_response(at, "it is not JSON"))
        }
        E::JsonValueExt(error) => AttemptError::permanent(invalid_response(
            at,
            &sanitize_message(&error.to_string(), at),
        )),
    }
}

pub(super) fn invalid_response(at: &ModelEndpoint, why: &str) -> ModelError {
    ModelError::InvalidResponse {
        provider: at.provider.clone(),
        reason: why.to_owned(),
    }
}

/// Shortens a provider's message to one line and removes the API key.
fn sanitize_message(text: &str, at: &ModelEndpoint) -> String {
    const LONGEST: usize = 300;
    let text = at
        .key
        .as_ref()
        .map_or_else(|| text.to_owned(), |key| key.scrub(text));
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn parse_retry_after(milliseconds: Option<&str>, seconds: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text?.trim().parse::<f64>().ok();
    let seconds = number(milliseconds)
        .map(|ms| ms / 1_000.0)
        .or(number(seconds))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Classifies a network error: no connection, a broken connection, or a timeout.
fn classify_network_error(error: BoxError, at: &ModelEndpoint) -> AttemptError {
    if error.downcast_ref::<StreamTimeout>().is_some() {
        return AttemptError::permanent(ModelError::TimedOut);
    }
    let error = match error.downcast::<reqwest::Error>() {
        Ok(error) => error.without_url(),
        Err(error) => {
            // Not valid text.
            return AttemptError::permanent(invalid_response(
                at,
                &sanitize_message(&error.to_string(), at),
            ));
        }
    };
    let source = BoxError::from(root_cause(&error));
    if error.is_connect() || error.is_request() {
        return AttemptError::transient(ModelError::Unreachable {
            provider: at.provider.clone(),
            source,
        });
    }
    if error.is_timeout() {
        return AttemptError::permanent(ModelError::TimedOut);
    }
    AttemptError::transient(ModelError::Interrupted { source })
}

/// Returns the innermost source of an error.
fn root_cause(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

/// Formats an error with its sources on one line.
pub(super) fn format_error_chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    message
}

/// The message and the codes of an error response.
struct ErrorBody {
    message: String,
    codes: Vec<String>,
}

fn parse_error_body(body: &Value) -> ErrorBody {
    // `{"error": {…}}`, `{"error": "…"}`, `[{"error": …}]`, or the object itself.
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let text = |name: &str| error[name].as_str();
    let message = error
        .as_str()
        .or_else(|| text("message"))
        .or_else(|| body["message"].as_str())
        .or_else(|| body["detail"].as_str());
    let codes = ["type", "code", "status"]
        .iter()
        .filter_map(|name| text(name));
    ErrorBody {
        message: message.unwrap_or_default().to_owned(),
        codes: codes.map(str::to_owned).collect(),
    }
}

/// Classifies a response with an error status.
fn classify_status(
    status: u16,
    body: &str,
    wait: Option<Duration>,
    at: &ModelEndpoint,
) -> AttemptError {
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let ErrorBody { message, codes } = parse_error_body(&json);
    let message = if message.is_empty() { body } else { &message };
    let is = |name: &str| codes.iter().any(|code| code == name);
    let says = |words: &str| message.to_ascii_lowercase().contains(words);
    let provider = at.provider.clone();

    if let Some((tokens, window)) = parse_context_overflow(status, message, &codes, &json) {
        return AttemptError::permanent(ModelError::TooLong {
            model: at.model.clone(),
            tokens,
            window,
        });
    }
    if status == 401 || says("api key not valid") || says("invalid api key") {
        return AttemptError::permanent(ModelError::BadKey {
            provider,
            variable: at.key_source.clone(),
        });
    }
    let is_unknown = is("model_not_found")
        || says("not a valid model")
        || (status == 404 && (says("model") || is("not_found_error")));
    if is_unknown {
        return AttemptError::permanent(ModelError::NoSuchModel {
            provider,
            model: at.model.clone(),
        });
    }
    let detail = match sanitize_message(message, at).as_str() {
        "" => format!("status {status}"),
        text => format!("{status}: {text}"),
    };
    match status {
        // The quota is used up, so waiting does not help.
        429 if is("insufficient_quota") => AttemptError::permanent(ModelError::Refused(detail)),
        429 => AttemptError {
            retry_after: wait,
            ..AttemptError::transient(ModelError::RateLimited {
                provider,
                retry_after: wait,
            })
        },
        408 | 409 | 425 | 500.. => AttemptError {
            retry_after: wait,
            ..AttemptError::transient(ModelError::Unavailable {
                provider,
                source: BoxError::from(detail),
            })
        },
        _ => AttemptError {
            rejects_json_mode: says("response_format"),
            ..AttemptError::permanent(ModelError::Refused(detail))
        },
    }
}

/// Classifies an error event in the stream.
fn classify_error_event(body: &Value, at: &ModelEndpoint) -> AttemptError {
    let ErrorBody { codes, message } = parse_error_body(body);
    if codes.is_empty() && message.is_empty() {
        return AttemptError::permanent(invalid_response(at, "unexpected event"));
    }
    let is = |name: &str| codes.iter().any(|code| code == name);
    let status = match body["code"].as_u64().or(body["error"]["code"].as_u64()) {
        Some(status @ 400..=599) => u16::try_from(status).unwrap_or(500),
        _ if is("rate_limit_error") || is("rate_limit_exceeded") => 429,
        _ if is("authentication_error") => 401,
        _ if is("invalid_request_error") => 400,
        // Overloaded, failing, or an unknown error.
        _ => 500,
    };
    classify_status(status, &body.to_string(), None, at)
}
