//! Why a model did not answer, so that a person knows what to do about it.

use std::time::Duration;

/// What lies under an error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider does not know the key.
    #[error("{provider} does not accept the key{}", format_key_source(variable.as_deref()))]
    BadKey {
        /// Whose key.
        provider: String,
        /// Where the key came from: a variable's name, or a file.
        variable: Option<String>,
    },
    /// Nobody could be reached at the address.
    #[error("{provider} cannot be reached")]
    Unreachable {
        /// Who.
        provider: String,
        /// Why.
        source: BoxError,
    },
    /// The provider is overloaded or broken.
    #[error("{provider} is not available")]
    Unavailable {
        /// Who.
        provider: String,
        /// Why.
        source: BoxError,
    },
    /// The provider wants fewer requests.
    #[error("{provider} wants fewer requests{}", format_retry_after(*retry_after))]
    RateLimited {
        /// Who.
        provider: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// The request is more than the model takes: compact and ask again.
    #[error("the request is longer than {model} takes{}", format_size(*tokens, *window))]
    TooLong {
        /// Which model.
        model: String,
        /// How long it is, where the provider said so.
        tokens: Option<u64>,
        /// How long it may be, where the provider said so.
        window: Option<u64>,
    },
    /// The provider does not serve this model.
    #[error("{provider} has no model {model:?}")]
    NoSuchModel {
        /// Who.
        provider: String,
        /// Which model.
        model: String,
    },
    /// The answer broke off half-way.
    #[error("the answer broke off half-way")]
    Interrupted {
        /// How.
        source: BoxError,
    },
    /// What came is not what the provider's interface promises.
    #[error("{provider} answered something that cannot be read: {reason}")]
    InvalidResponse {
        /// Who.
        provider: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The provider will not serve this, now or later.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// It took too long.
    #[error("the provider took too long")]
    TimedOut,
    /// The answer ended before it was finished.
    #[error("the answer was cut off")]
    Truncated,
}

/// What sort of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is wrong: the person has to set another.
    Key,
    /// The network, the provider, or its patience: later it may work.
    Unavailable,
    /// The request is too long: with less of it, it may work.
    TooLong,
    /// The model's name is wrong.
    NotFound,
    /// The answer is not whole.
    Incomplete,
    /// The answer makes no sense.
    Invalid,
    /// The provider will not.
    Refused,
}

impl ModelError {
    /// What sort of thing went wrong.
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

    /// Whether asking the same again is pointless.
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
        format!(": try again in {} s", wait.as_secs_f64().ceil())
    })
}

fn format_size(tokens: Option<u64>, window: Option<u64>) -> String {
    match (tokens, window) {
        (Some(tokens), Some(window)) => format!(": {tokens} tokens of {window}"),
        (None, Some(window)) => format!(": {window} tokens"),
        (Some(_) | None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_a_person_needs() {
        let told = [
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
            told,
            [
                "anthropic does not accept the key from ANTHROPIC_API_KEY",
                "openai wants fewer requests: try again in 2 s",
                "the request is longer than gpt-5 takes: 500000 tokens of 400000",
            ]
        );
    }
}
