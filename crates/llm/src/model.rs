//! A language model, as far as a summarizer needs one.

use std::fmt::Debug;

use async_trait::async_trait;
use throughline_model::Usage;

/// What a model said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its answer.
    pub text: String,
    /// What the provider said it cost.
    pub usage: Option<Usage>,
}

/// A model that answers one prompt.
#[async_trait]
pub trait Model: Debug + Send + Sync {
    /// What the provider calls it.
    fn name(&self) -> &str;

    /// Answers `prompt` under the instructions of `system`.
    ///
    /// An answer that the provider cut off is [`ModelError::Cut`], not an answer.
    async fn complete(&self, system: &str, prompt: &str) -> Result<Completion, ModelError>;
}

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider cannot be reached, or is overloaded.
    #[error("the provider is not available")]
    Unavailable {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The provider will not serve this, now or later.
    #[error("the provider refused: {0}")]
    Refused(String),
    /// It took too long.
    #[error("the provider took too long")]
    TimedOut,
    /// The answer ended before it was finished.
    #[error("the answer was cut off")]
    Cut,
}

impl ModelError {
    /// Whether asking again is pointless.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Unavailable { .. } | Self::TimedOut | Self::Cut => false,
        }
    }
}
