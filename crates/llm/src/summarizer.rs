//! What a summarizer is given, and what it gives back.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use throughline_model::{Entry, Note, Summary, Usage};

use crate::{ModelError, SummaryParseError};

/// What is to be summarized.
#[derive(Clone, Copy, Debug)]
pub struct SummaryRequest<'a> {
    /// What everything before the entries came to.
    pub previous: Option<&'a Summary>,
    /// Facts that must be in the summary, word for word.
    pub pins: &'a [Note],
    /// Decisions that stand, and must be in the summary, word for word.
    pub decisions: &'a [Note],
    /// What happened since, oldest first.
    pub entries: &'a [Entry],
    /// How many tokens the summary may take, about. See [`tokens`](crate::tokens).
    pub budget: u64,
}

/// A summary, and what the provider said it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSummary {
    /// The summary.
    pub summary: Summary,
    /// Tokens the provider reported, where there is a provider.
    pub usage: Option<Usage>,
}

/// Something that can summarize.
#[async_trait]
pub trait Summarizer: Debug + Send + Sync {
    /// What a checkpoint says wrote it.
    fn name(&self) -> &str;

    /// Summarizes. The summary still has to be [accepted](crate::accept).
    async fn summarize(
        &self,
        brief: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError>;
}

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummarizeError {
    /// The model did not answer.
    #[error("the model gave no answer")]
    Model {
        /// Why.
        source: ModelError,
        /// What it cost nevertheless.
        usage: Option<Usage>,
    },
    /// The model answered something else than was asked for.
    #[error("the model's answer is not a summary")]
    InvalidAnswer {
        /// What is wrong with it.
        source: SummaryParseError,
        /// What it cost nevertheless.
        usage: Option<Usage>,
    },
    /// The model took too long.
    #[error("the model did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

impl SummarizeError {
    /// What was spent on the failure.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Model { usage, .. } | Self::InvalidAnswer { usage, .. } => *usage,
            Self::TimedOut(_) => None,
        }
    }

    /// Whether asking again is pointless.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Model { source, .. } => source.is_permanent(),
            Self::InvalidAnswer { .. } | Self::TimedOut(_) => false,
        }
    }
}
