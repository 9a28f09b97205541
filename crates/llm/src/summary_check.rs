//! Whether a summary may take the place of what it summarizes.

use throughline_model::{Note, Summary};

use crate::SummaryRequest;

/// Why a summary may not take the place of what it summarizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryRejection {
    /// There is something to summarize and it says nothing.
    #[error("the summary is empty")]
    Empty,
    /// Nothing would be gained.
    #[error("the summary takes about {tokens} tokens and replaces {replaced}")]
    NotSmaller {
        /// What it takes.
        tokens: u64,
        /// What it would replace.
        replaced: u64,
    },
    /// A pinned fact is not in it.
    #[error("the summary lost a pin: {0:?}")]
    MissingPin(String),
    /// A standing decision is not in it.
    #[error("the summary lost a decision: {0:?}")]
    MissingDecision(String),
}

/// About how many tokens a summary takes where it is sent: four bytes each.
pub fn estimate_summary_tokens(summary: &Summary) -> u64 {
    summary.to_block().len().div_ceil(4) as u64
}

/// Checks that a summary is smaller than the `replaced_tokens` it stands for, and that
/// every pin and standing decision is still in it.
pub fn check_summary(
    summary: &Summary,
    brief: &SummaryRequest<'_>,
    replaced_tokens: u64,
) -> Result<(), SummaryRejection> {
    let messages = brief.entries.iter().any(|entry| entry.message().is_some());
    if summary.is_empty() && (messages || brief.previous.is_some_and(|old| !old.is_empty())) {
        return Err(SummaryRejection::Empty);
    }
    let whole = normalize(&summary.to_block());
    if let Some(pin) = find_missing(brief.pins, &whole) {
        return Err(SummaryRejection::MissingPin(pin.to_owned()));
    }
    if let Some(decision) = find_missing(brief.decisions, &whole) {
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

/// A text without what rendering may change: spacing, case, comment signs, a full stop.
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

    fn brief<'a>(pins: &'a [Note], decisions: &'a [Note]) -> SummaryRequest<'a> {
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
        let brief = brief(&pins, &decisions);
        assert_eq!(check_summary(&summary, &brief, 1_000), Ok(()));
        assert!(matches!(
            check_summary(&summary, &brief, 10),
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
            check_summary(&summary, &brief(&pins, &none), 1_000),
            Err(SummaryRejection::MissingPin("the pin".into()))
        );
        assert_eq!(
            check_summary(&summary, &brief(&none, &pins), 1_000),
            Err(SummaryRejection::MissingDecision("the pin".into()))
        );
    }
}
