//! Checks whether a summary may replace the entries it summarizes.

use throughline_model::{Note, Summary};

use crate::SummaryRequest;

/// Why a summary may not replace the entries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryRejection {
    /// The summary is empty although there is something to summarize.
    #[error("the summary is empty")]
    Empty,
    /// The summary is not shorter than what it replaces.
    #[error("the summary takes about {tokens} tokens but replaces only {replaced}")]
    NotSmaller {
        /// Estimated size of the summary.
        tokens: u64,
        /// Size of what it would replace.
        replaced: u64,
    },
    /// A pinned fact is missing.
    #[error("the summary is missing a pin: {0:?}")]
    MissingPin(String),
    /// A decision in effect is missing.
    #[error("the summary is missing a decision: {0:?}")]
    MissingDecision(String),
}

/// Estimates the tokens of a summary in a request, at four bytes per token.
pub fn estimate_summary_tokens(summary: &Summary) -> u64 {
    summary.to_block().len().div_ceil(4) as u64
}

/// Checks that a summary is smaller than the `replaced_tokens` and that it contains every
/// pin and every decision in effect.
pub fn check_summary(
    summary: &Summary,
    request: &SummaryRequest<'_>,
    replaced_tokens: u64,
) -> Result<(), SummaryRejection> {
    let messages = request
        .entries
        .iter()
        .any(|entry| entry.message().is_some());
    if summary.is_empty() && (messages || request.previous.is_some_and(|old| !old.is_empty())) {
        return Err(SummaryRejection::Empty);
    }
    let whole = normalize(&summary.to_block());
    if let Some(pin) = find_missing(request.pins, &whole) {
        return Err(SummaryRejection::MissingPin(pin.to_owned()));
    }
    if let Some(decision) = find_missing(request.decisions, &whole) {
        return Err(SummaryRejection::MissingDecision(decision.to_owned()));
    }
    let tokens = estimate_summary_tokens(summary);
    if tokens >= replaced_tokens {
        return Err(SummaryRejection::NotSmaller {
            tokens,
            replaced: replaced_tokens,
        });
    }
    Ok(())
}

fn find_missing<'a>(noted: &'a [Note], whole: &str) -> Option<&'a str> {
    noted
        .iter()
        .find(|noted| !whole.contains(&normalize(&noted.text)))
        .map(|noted| noted.text.as_str())
}

/// Removes what rendering may change: spacing, case, comment markers, a final full stop.
fn normalize(text: &str) -> String {
    let text = text.replace("<!--", "<! --").replace("-->", "-- >");
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_model::Seq;

    fn noted(text: &str) -> Vec<Note> {
        vec![Note {
            seq: Seq(1),
            text: text.into(),
        }]
    }

    fn request<'a>(pins: &'a [Note], decisions: &'a [Note]) -> SummaryRequest<'a> {
        SummaryRequest {
            previous: None,
            pins,
            decisions,
            entries: &[],
            budget: 1_000,
        }
    }

    #[test]
    fn a_summary_that_keeps_everything_and_is_smaller_is_accepted() {
        let summary = Summary {
            facts: vec!["Budget is 40 EUR".into()],
            decisions: vec!["Use <!-- Postgres -->".into()],
            ..Summary::default()
        };
        let (pins, decisions) = (noted("budget is\n40 EUR."), noted("Use <!-- Postgres -->"));
        let request = request(&pins, &decisions);
        assert_eq!(check_summary(&summary, &request, 1_000), Ok(()));
        assert!(matches!(
            check_summary(&summary, &request, 10),
            Err(SummaryRejection::NotSmaller { replaced: 10, .. })
        ));
    }

    #[test]
    fn a_missing_pin_and_a_missing_decision_are_distinguished() {
        let summary = Summary {
            facts: vec!["Something".into()],
            ..Summary::default()
        };
        let (pins, none) = (noted("the pin"), Vec::new());
        assert_eq!(
            check_summary(&summary, &request(&pins, &none), 1_000),
            Err(SummaryRejection::MissingPin("the pin".into()))
        );
        assert_eq!(
            check_summary(&summary, &request(&none, &pins), 1_000),
            Err(SummaryRejection::MissingDecision("the pin".into()))
        );
    }
}
