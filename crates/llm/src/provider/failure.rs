//! Why an attempt failed, from whatever the client says.
//!
//! Providers tell the same things in many ways. Each is read once, here, into an error
//! that says what a person can do about it.
//!
//! Invariant: no address and no key gets into an error.

use std::error::Error;
use std::time::Duration;

use genai::webc::StreamTimeout;
use serde_json::Value;

use super::too_long::too_long;
use crate::{Cause, Connection, ModelError};

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Whether the same may work in a moment.
    pub(super) may_pass: bool,
    /// How long the provider wants to be left alone.
    pub(super) retry_after: Option<Duration>,
    /// Whether the provider does not know how to be held to JSON.
    pub(super) no_json: bool,
}

impl Failure {
    /// An attempt that is not worth another.
    pub(super) fn lasting(error: ModelError) -> Self {
        Self {
            error,
            may_pass: false,
            retry_after: None,
            no_json: false,
        }
    }

    fn passing(error: ModelError) -> Self {
        Self {
            may_pass: true,
            ..Self::lasting(error)
        }
    }

    /// The stream ended and the answer did not.
    pub(super) fn broke_off(why: &str) -> Self {
        Self::passing(ModelError::BrokeOff {
            source: Cause::from(why),
        })
    }

    /// What the client said went wrong.
    pub(super) fn of(error: genai::Error, at: &Connection) -> Self {
        match error {
            genai::Error::HttpError {
                status,
                body,
                headers,
                ..
            } => {
                let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
                let wait = retry_after(header("retry-after-ms"), header("retry-after"));
                answered(status.as_u16(), &body, wait, at)
            }
            genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
                Ok(inner) => Self::of(*inner, at),
                Err(error) => network(error, at),
            },
            genai::Error::WebModelCall { webc_error, .. } => at_once(webc_error, at),
            // The provider began to answer, and then told of an error.
            genai::Error::ChatResponse { body, .. } => told(&body, at),
            genai::Error::StreamParse { serde_error, .. } => {
                Self::lasting(bad(at, &serde_error.to_string()))
            }
            other => Self::lasting(bad(at, &kept(&other.to_string(), at))),
        }
    }
}

/// What went wrong with an answer that is not streamed.
fn at_once(error: genai::webc::Error, at: &Connection) -> Failure {
    use genai::webc::Error as E;
    match error {
        E::ResponseFailedStatus {
            status,
            body,
            headers,
        } => {
            let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
            let wait = retry_after(header("retry-after-ms"), header("retry-after"));
            answered(status.as_u16(), &body, wait, at)
        }
        E::Reqwest(error) => network(error.into(), at),
        E::ResponseFailedNotJson { .. } | E::ResponseFailedInvalidJson { .. } => {
            Failure::lasting(bad(at, "there is no JSON in it"))
        }
        E::JsonValueExt(error) => Failure::lasting(bad(at, &kept(&error.to_string(), at))),
    }
}

pub(super) fn bad(at: &Connection, why: &str) -> ModelError {
    ModelError::BadAnswer {
        provider: at.provider.clone(),
        why: why.to_owned(),
    }
}

/// A text of the provider's, on one line, not too long, without the key.
fn kept(text: &str, at: &Connection) -> String {
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

fn retry_after(milliseconds: Option<&str>, seconds: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text?.trim().parse::<f64>().ok();
    let seconds = number(milliseconds)
        .map(|ms| ms / 1_000.0)
        .or(number(seconds))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The network's failures: no connection, a connection that broke, silence.
fn network(error: Cause, at: &Connection) -> Failure {
    if error.downcast_ref::<StreamTimeout>().is_some() {
        return Failure::lasting(ModelError::TimedOut);
    }
    let error = match error.downcast::<reqwest::Error>() {
        Ok(error) => error.without_url(),
        Err(error) => {
            // Bytes that are no text.
            return Failure::lasting(bad(at, &kept(&error.to_string(), at)));
        }
    };
    let source = Cause::from(root(&error));
    if error.is_connect() || error.is_request() {
        return Failure::passing(ModelError::NoNetwork {
            provider: at.provider.clone(),
            source,
        });
    }
    if error.is_timeout() {
        return Failure::lasting(ModelError::TimedOut);
    }
    Failure::passing(ModelError::BrokeOff { source })
}

/// What lies at the bottom of an error, which is what happened.
fn root(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

/// An error and what lies under it, on one line.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push_str(&format!(": {error}"));
        cause = error.source();
    }
    told
}

/// What an error object says, and what it calls itself.
struct Told {
    message: String,
    codes: Vec<String>,
}

fn read(body: &Value) -> Told {
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
    Told {
        message: message.unwrap_or_default().to_owned(),
        codes: codes.map(str::to_owned).collect(),
    }
}

/// A status that is not success.
fn answered(status: u16, body: &str, wait: Option<Duration>, at: &Connection) -> Failure {
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let Told { message, codes } = read(&json);
    let message = if message.is_empty() { body } else { &message };
    let is = |name: &str| codes.iter().any(|code| code == name);
    let says = |words: &str| message.to_ascii_lowercase().contains(words);
    let provider = at.provider.clone();

    if let Some((tokens, window)) = too_long(status, message, &codes, &json) {
        return Failure::lasting(ModelError::TooLong {
            model: at.model.clone(),
            tokens,
            window,
        });
    }
    if status == 401 || says("api key not valid") || says("invalid api key") {
        return Failure::lasting(ModelError::BadKey {
            provider,
            variable: at.key_from.clone(),
        });
    }
    let is_unknown = is("model_not_found")
        || says("not a valid model")
        || (status == 404 && (says("model") || is("not_found_error")));
    if is_unknown {
        return Failure::lasting(ModelError::NoSuchModel {
            provider,
            model: at.model.clone(),
        });
    }
    let told = match kept(message, at).as_str() {
        "" => format!("status {status}"),
        said => format!("{status}: {said}"),
    };
    match status {
        // There is nothing left to wait for.
        429 if is("insufficient_quota") => Failure::lasting(ModelError::Refused(told)),
        429 => Failure {
            retry_after: wait,
            ..Failure::passing(ModelError::RateLimited {
                provider,
                retry_after: wait,
            })
        },
        408 | 409 | 425 | 500.. => Failure {
            retry_after: wait,
            ..Failure::passing(ModelError::Unavailable {
                provider,
                source: Cause::from(told),
            })
        },
        _ => Failure {
            no_json: says("response_format"),
            ..Failure::lasting(ModelError::Refused(told))
        },
    }
}

/// An error that came where the answer should.
fn told(body: &Value, at: &Connection) -> Failure {
    let Told { codes, message } = read(body);
    if codes.is_empty() && message.is_empty() {
        return Failure::lasting(bad(at, "there is an event in it that is no answer"));
    }
    let is = |name: &str| codes.iter().any(|code| code == name);
    let status = match body["code"].as_u64().or(body["error"]["code"].as_u64()) {
        Some(status @ 400..=599) => u16::try_from(status).unwrap_or(500),
        _ if is("rate_limit_error") || is("rate_limit_exceeded") => 429,
        _ if is("authentication_error") => 401,
        _ if is("invalid_request_error") => 400,
        // Overloaded, out of order, or something nobody has heard of.
        _ => 500,
    };
    answered(status, &body.to_string(), None, at)
}
