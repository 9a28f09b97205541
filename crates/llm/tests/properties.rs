//! Properties of the extractive summarizer that hold for any input.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{brief, call, log, noted, result, say};
use proptest::prelude::*;
use throughline_llm::{ExtractiveSummarizer, SummaryRequest, estimate_summary_tokens};
use throughline_model::{Body, Role, Summary};

/// Generates texts with cue phrases and structure.
fn any_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => "[a-z]{1,9}",
        2 => Just("we decided to".to_owned()),
        2 => Just("let's use".to_owned()),
        1 => Just("instead of".to_owned()),
        1 => Just("TODO".to_owned()),
        1 => Just("done".to_owned()),
        1 => Just("blocked by".to_owned()),
        1 => Just("next steps:".to_owned()),
        1 => "[A-Z][a-z]{2,8}",
        1 => "[0-9]{1,6}( EUR|%| ms|,000)?",
        1 => "src/[a-z]{2,5}\\.rs",
        1 => Just("ёжик — 日本語。".to_owned()),
        1 => Just("`code. here`".to_owned()),
        1 => Just("e.g.".to_owned()),
    ];
    let joint = prop_oneof![
        12 => Just(" "),
        3 => Just(". "),
        1 => Just("? "),
        1 => Just("; "),
        1 => Just("\n- "),
        1 => Just("\n- [ ] "),
        1 => Just("\n- [x] "),
        1 => Just("\n\n# "),
        1 => Just("\n```\n"),
        1 => Just("\n| "),
        1 => Just("**"),
        1 => Just("\n"),
    ];
    prop::collection::vec((word, joint), 0..60).prop_map(|parts| {
        parts
            .into_iter()
            .map(|(word, joint)| word + joint)
            .collect()
    })
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        4 => any_text().prop_map(|text| say(Role::User, &text)),
        4 => any_text().prop_map(|text| say(Role::Assistant, &text)),
        1 => any_text().prop_map(|text| say(Role::System, &text)),
        1 => any_text().prop_map(|text| result(&text)),
        1 => "\\PC{0,300}".prop_map(|text| say(Role::User, &text)),
        1 => "[a-z/]{1,12}".prop_map(|path| call("read", &path)),
        1 => any_text().prop_map(|text| Body::Pinned { text }),
        1 => Just(Body::Cleared),
    ]
}

/// Removes what trimming and rendering may change.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !"*#>|-".contains(*c)).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn items(summary: &Summary) -> impl Iterator<Item = &String> {
    [
        &summary.topics,
        &summary.decisions,
        &summary.pending,
        &summary.completed,
        &summary.in_progress,
        &summary.blockers,
        &summary.facts,
        &summary.open_tasks,
    ]
    .into_iter()
    .flatten()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn any_entries_give_whole_items_within_budget(
        bodies in prop::collection::vec(any_body(), 0..24),
        budget in 160_u64..2_000,
    ) {
        let entries = log(bodies);
        let half = entries.len() / 2;
        let first = ExtractiveSummarizer.extract(&brief(None, &entries[..half], budget));
        let second = ExtractiveSummarizer.extract(&brief(Some(&first), &entries[half..], budget));

        let sources: Vec<String> = entries
            .iter()
            .filter_map(|entry| entry.message())
            .map(|message| {
                let results = message.content.tool_results().map(|r| r.content.to_text());
                plain(&format!("{} {}", message.content.to_text(), results.collect::<String>()))
            })
            .collect();
        for summary in [&first, &second] {
            prop_assert!(estimate_summary_tokens(summary) * 10 <= budget * 11, "{} > {budget}", estimate_summary_tokens(summary));
            for item in items(summary) {
                let item = plain(item);
                prop_assert!(sources.iter().any(|text| text.contains(&item)), "{item:?}");
            }
        }
        let again = ExtractiveSummarizer.extract(&brief(Some(&first), &entries[half..], budget));
        prop_assert_eq!(&again, &second);
    }

    #[test]
    fn any_budget_keeps_what_is_noted(
        texts in prop::collection::vec("\\PC{1,80}", 0..4),
        bodies in prop::collection::vec(any_body(), 0..6),
        budget: u64,
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|t| !t.trim().is_empty()).collect();
        let noted = noted(&texts);
        let entries = log(bodies);
        let brief = SummaryRequest { pins: &noted, decisions: &noted, ..brief(None, &entries, budget) };
        let summary = ExtractiveSummarizer.extract(&brief);
        for text in texts {
            prop_assert!(summary.facts.iter().any(|fact| fact == text));
            prop_assert!(summary.decisions.iter().any(|decision| decision == text));
        }
    }
}
