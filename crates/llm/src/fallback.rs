//! Summarizes with a model, and falls back to the extractive summarizer if that fails.

use std::error::Error;

use throughline_model::Usage;

use crate::{
    ExtractiveSummarizer, GeneratedSummary, Summarizer, SummaryRejection, SummaryRequest,
    check_summary,
};

/// A summary and how it was produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryOutcome {
    /// The summary, and the token usage of all attempts.
    pub generated: GeneratedSummary,
    /// What wrote it: a model's name, or `extractive`.
    pub by: String,
    /// Warnings to show to the user.
    pub warnings: Vec<String>,
    /// Set if the summary must not replace anything, for example because the messages are
    /// already shorter. The caller then keeps the messages.
    pub rejection: Option<SummaryRejection>,
}

/// Summarizes with `model`, retries once on failure or rejection, then falls back.
pub async fn summarize_with_fallback(
    model: Option<&dyn Summarizer>,
    request: &SummaryRequest<'_>,
    replaced_tokens: u64,
) -> SummaryOutcome {
    let mut warnings = Vec::new();
    let mut spent: Option<Usage> = None;
    if let Some(model) = model {
        for attempt in ["", " again"] {
            let lasting = match model.summarize(request).await {
                Ok(GeneratedSummary { summary, usage }) => {
                    add_usage(&mut spent, usage);
                    match check_summary(&summary, request, replaced_tokens) {
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
                                "the summary by {} was rejected{attempt}: {rejected}",
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
    // Stay below the size of what is replaced, if that is less than the budget.
    let budget = request.budget.min(replaced_tokens.saturating_mul(3) / 4);
    let summary = ExtractiveSummarizer.extract(&SummaryRequest { budget, ..*request });
    let rejected = check_summary(&summary, request, replaced_tokens).err();
    if let Some(rejected) = &rejected {
        warnings.push(format!("the summary was not used: {rejected}"));
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

/// Formats an error with its sources on one line.
fn format_error_chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    message
}
