//! A summary whatever happens: the model, once more, then the extractive summarizer.

use std::error::Error;

use throughline_model::Usage;

use crate::{
    ExtractiveSummarizer, GeneratedSummary, Summarizer, SummaryRejection, SummaryRequest,
    check_summary,
};

/// A summary that was come by somehow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryOutcome {
    /// The summary, and what all attempts at it cost together.
    pub generated: GeneratedSummary,
    /// What wrote it: a model's name, or `extractive`.
    pub by: String,
    /// What the person should know.
    pub warnings: Vec<String>,
    /// Set where even the last resort may not replace anything, as with a few short
    /// messages: then keep what is there.
    pub rejection: Option<SummaryRejection>,
}

/// Summarizes with `model`, once more if that fails or is not accepted, then without it.
pub async fn summarize_with_fallback(
    model: Option<&dyn Summarizer>,
    brief: &SummaryRequest<'_>,
    replaced_tokens: u64,
) -> SummaryOutcome {
    let mut warnings = Vec::new();
    let mut spent: Option<Usage> = None;
    if let Some(model) = model {
        for attempt in ["", " again"] {
            let lasting = match model.summarize(brief).await {
                Ok(GeneratedSummary { summary, usage }) => {
                    add_usage(&mut spent, usage);
                    match check_summary(&summary, brief, replaced_tokens) {
                        Ok(()) => {
                            return SummaryOutcome {
                                generated: GeneratedSummary {
                                    summary,
                                    usage: spent,
                                },
                                by: model.name().to_owned(),
                                warnings,
                                rejection: None,
                            };
                        }
                        Err(rejected) => {
                            warnings.push(format!(
                                "the summary by {} was not accepted{attempt}: {rejected}",
                                model.name()
                            ));
                            false
                        }
                    }
                }
                Err(error) => {
                    add_usage(&mut spent, error.usage());
                    warnings.push(format!(
                        "{} could not summarize{attempt}: {}",
                        model.name(),
                        format_error_chain(&error)
                    ));
                    error.is_permanent()
                }
            };
            if lasting {
                break;
            }
        }
        warnings.push("summarized without a model instead".to_owned());
    }
    // Smaller than what it replaces, where that is less than it may take.
    let budget = brief.budget.min(replaced_tokens.saturating_mul(3) / 4);
    let summary = ExtractiveSummarizer.extract(&SummaryRequest { budget, ..*brief });
    let rejected = check_summary(&summary, brief, replaced_tokens).err();
    if let Some(rejected) = &rejected {
        warnings.push(format!("nothing is gained by summarizing: {rejected}"));
    }
    SummaryOutcome {
        generated: GeneratedSummary {
            summary,
            usage: spent,
        },
        by: ExtractiveSummarizer.name().to_owned(),
        warnings,
        rejection: rejected,
    }
}

fn add_usage(spent: &mut Option<Usage>, usage: Option<Usage>) {
    if let Some(usage) = usage {
        *spent.get_or_insert_default() += usage;
    }
}

/// An error with its causes, on one line.
fn format_error_chain(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push_str(&format!(": {error}"));
        cause = error.source();
    }
    told
}
