//! Errors of model calls, classified by what the user can do about them.

use std::time::Duration;

/// The source of an error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a model call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider rejected the API key.
    #[error("{provider} rejected the API key{}", format_key_source(variable.as_deref()))]
    BadKey {
        /// The provider that rejected it.
        provider: String,
        /// Where the key came from: the name of a variable, or a file.
        variable: Option<String>,
    },
    /// The connection to the provider failed.
    #[error("{provider} is unreachable")]
    Unreachable {
        /// The provider.
        provider: String,
        /// The network error.
        source: BoxError,
    },
    /// The provider is overloaded or failing.
    #[error("{provider} is not available")]
    Unavailable {
        /// The provider.
        provider: String,
        /// The error it returned.
        source: BoxError,
    },
    /// The provider rate limited the request.
    #[error("rate limited by {provider}{}", format_retry_after(*retry_after))]
    RateLimited {
        /// The provider.
        provider: String,
        /// How long the provider asked us to wait, if it did.
        retry_after: Option<Duration>,
    },
    /// The request exceeds the model's context window: compact it, then retry.
    #[error("the request is too long for {model}{}", format_size(*tokens, *window))]
    TooLong {
        /// The model.
        model: String,
        /// Size of the request, if the provider reported it.
        tokens: Option<u64>,
        /// The limit, if the provider reported it.
        window: Option<u64>,
    },
    /// The provider does not serve this model.
    #[error("{provider} has no model {model:?}")]
    NoSuchModel {
        /// The provider.
        provider: String,
        /// The requested model.
        model: String,
    },
    /// The stream ended before the answer was complete.
    #[error("the answer was interrupted")]
    Interrupted {
        /// What interrupted it.
        source: BoxError,
    },
    /// The response does not follow the provider's API.
    #[error("{provider} sent an invalid response: {reason}")]
    InvalidResponse {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The provider rejected the request; retrying does not help.
    #[error("the provider rejected the request: {0}")]
    Refused(String),
    /// The provider did not respond in time.
    #[error("the provider timed out")]
    TimedOut,
    /// The answer reached the output limit before it was finished.
    #[error("the answer was cut off")]
    Truncated,
}

/// Category of a [`ModelError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The API key is wrong; the user has to set another.
    Key,
    /// Network failure, overload or rate limit; a retry may succeed.
    Unavailable,
    /// The request is too long; a shorter one may succeed.
    TooLong,
    /// The model does not exist.
    NotFound,
    /// The answer is incomplete.
    Incomplete,
    /// The response is malformed.
    Invalid,
    /// The provider rejected the request.
    Refused,
}

impl ModelError {
    /// Returns the category of the error.
    pub fn kind(&self) -> ModelErrorKind {
        match self {
            Self::BadKey { .. } => ModelErrorKind::Key,
            Self::Unreachable { .. }
            | Self::Unavailable { .. }
            | Self::RateLimited { .. }
            | Self::TimedOut => ModelErrorKind::Unavailable,
            Self::TooLong { .. } => ModelErrorKind::TooLong,
            Self::NoSuchModel { .. } => ModelErrorKind::NotFound,
            Self::Interrupted { .. } | Self::Truncated => ModelErrorKind::Incomplete,
            Self::InvalidResponse { .. } => ModelErrorKind::Invalid,
            Self::Refused(_) => ModelErrorKind::Refused,
        }
    }

    /// Whether retrying the same request is pointless.
    pub fn is_permanent(&self) -> bool {
        match self.kind() {
            ModelErrorKind::Key
            | ModelErrorKind::TooLong
            | ModelErrorKind::NotFound
            | ModelErrorKind::Refused => true,
            ModelErrorKind::Unavailable | ModelErrorKind::Incomplete | ModelErrorKind::Invalid => {
                false
            }
        }
    }
}

fn format_key_source(variable: Option<&str>) -> String {
    variable.map_or_else(String::new, |name| format!(" from {name}"))
}

fn format_retry_after(wait: Option<Duration>) -> String {
    wait.map_or_else(String::new, |wait| {
        format!(" (retry after {} s)", wait.as_secs_f64().ceil())
    })
}

fn format_size(tokens: Option<u64>, window: Option<u64>) -> String {
    match (tokens, window) {
        (Some(tokens), Some(window)) => format!(": {tokens} tokens, limit {window}"),
        (None, Some(window)) => format!(": limit {window} tokens"),
        (Some(_) | None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_a_person_needs() {
        let messages = [
            ModelError::BadKey {
                provider: "anthropic".into(),
                variable: Some("ANTHROPIC_API_KEY".into()),
            },
            ModelError::RateLimited {
                provider: "openai".into(),
                retry_after: Some(Duration::from_millis(1_200)),
            },
            ModelError::TooLong {
                model: "gpt-5".into(),
                tokens: Some(500_000),
                window: Some(400_000),
            },
        ]
        .map(|error| error.to_string());
        assert_eq!(
            messages,
            [
                "anthropic rejected the API key from ANTHROPIC_API_KEY",
                "rate limited by openai (retry after 2 s)",
                "the request is too long for gpt-5: 500000 tokens, limit 400000",
            ]
        );
    }
}
