//! A summary whatever happens: the model, once more, then the extractive summarizer.

use std::error::Error;

use throughline_model::Usage;

use crate::{Brief, Extractive, Rejected, Summarizer, Written, accept};

/// A summary that was come by somehow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The summary, and what all attempts at it cost together.
    pub written: Written,
    /// What wrote it: a model's name, or `extractive`.
    pub by: String,
    /// What the person should know.
    pub warnings: Vec<String>,
    /// Set where even the last resort may not replace anything, as with a few short
    /// messages: then keep what is there.
    pub rejected: Option<Rejected>,
}

/// Summarizes with `model`, once more if that fails or is not accepted, then without it.
pub async fn summarize_with_fallback(
    model: Option<&dyn Summarizer>,
    brief: &Brief<'_>,
    replaced_tokens: u64,
) -> Outcome {
    let mut warnings = Vec::new();
    let mut spent: Option<Usage> = None;
    if let Some(model) = model {
        for attempt in ["", " again"] {
            let lasting = match model.summarize(brief).await {
                Ok(Written { summary, usage }) => {
                    add(&mut spent, usage);
                    match accept(&summary, brief, replaced_tokens) {
                        Ok(()) => {
                            return Outcome {
                                written: Written {
                                    summary,
                                    usage: spent,
                                },
                                by: model.name().to_owned(),
                                warnings,
                                rejected: None,
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
                    add(&mut spent, error.usage());
                    warnings.push(format!(
                        "{} could not summarize{attempt}: {}",
                        model.name(),
                        told(&error)
                    ));
                    error.is_lasting()
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
    let summary = Extractive.extract(&Brief { budget, ..*brief });
    let rejected = accept(&summary, brief, replaced_tokens).err();
    if let Some(rejected) = &rejected {
        warnings.push(format!("nothing is gained by summarizing: {rejected}"));
    }
    Outcome {
        written: Written {
            summary,
            usage: spent,
        },
        by: Extractive.name().to_owned(),
        warnings,
        rejected,
    }
}

fn add(spent: &mut Option<Usage>, usage: Option<Usage>) {
    if let Some(usage) = usage {
        *spent.get_or_insert_default() += usage;
    }
}

/// An error with its causes, on one line.
fn told(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told.push_str(&format!(": {error}"));
        cause = error.source();
    }
    told
}
