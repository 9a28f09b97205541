//! The [`Summarizer`] trait, its request and its result.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use throughline_model::{Entry, Note, Summary, Usage};

use crate::{ModelError, SummaryParseError};

/// Input for a summary.
#[derive(Clone, Copy, Debug)]
pub struct SummaryRequest<'a> {
    /// Summary of everything before the entries.
    pub previous: Option<&'a Summary>,
    /// Pinned facts, which the summary must contain verbatim.
    pub pins: &'a [Note],
    /// Decisions in effect, which the summary must contain verbatim.
    pub decisions: &'a [Note],
    /// The entries since, oldest first.
    pub entries: &'a [Entry],
    /// Approximate size limit in tokens; see [`crate::estimate_summary_tokens`].
    pub budget: u64,
}

/// A summary and its token usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSummary {
    /// The summary.
    pub summary: Summary,
    /// Token usage reported by the provider, if a provider was used.
    pub usage: Option<Usage>,
}

/// Summarizes a conversation.
#[async_trait]
pub trait Summarizer: Debug + Send + Sync {
    /// Returns the name that is stored in the checkpoint.
    fn name(&self) -> &str;

    /// Summarizes. The caller has to check the result with [`crate::check_summary`].
    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError>;
}

/// Why summarizing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummarizeError {
    /// The model call failed.
    #[error("the model gave no answer")]
    Model {
        /// The model's error.
        source: ModelError,
        /// Token usage of the failed call.
        usage: Option<Usage>,
    },
    /// The model's answer is not in the requested format.
    #[error("the model's answer is not a summary")]
    InvalidAnswer {
        /// What is wrong with it.
        source: SummaryParseError,
        /// Token usage of the failed call.
        usage: Option<Usage>,
    },
    /// The model did not answer in time.
    #[error("the model did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

impl SummarizeError {
    /// Returns the token usage of the failed call.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Model { usage, .. } | Self::InvalidAnswer { usage, .. } => *usage,
            Self::TimedOut(_) => None,
        }
    }

    /// Whether a retry is pointless.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Model { source, .. } => source.is_permanent(),
            Self::InvalidAnswer { .. } | Self::TimedOut(_) => false,
        }
    }
}
