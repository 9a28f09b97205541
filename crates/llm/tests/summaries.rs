//! Tests summaries by a model over HTTP, from the request to acceptance.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod talk;

use std::time::Duration;

use common::{brief, noted, turns};
use talk::{WIRES, provider, run, start};
use throughline_llm::{
    ApiProtocol, ModelSummarizer, SummarizeError, Summarizer, SummaryOutcome, SummaryRequest,
    summarize_with_fallback,
};
use throughline_mock_provider::{Fault, MockProvider, Reply};
use throughline_model::{Entry, Note};

fn conversation() -> Vec<Entry> {
    turns(&["We use Postgres 16, see src/main.rs.", "Okay, done."])
}

fn summarize(mock: &MockProvider, wire: ApiProtocol, pins: &[Note]) -> SummaryOutcome {
    let entries = conversation();
    let summarizer = ModelSummarizer::new(provider(mock, wire));
    let brief = SummaryRequest {
        pins,
        ..brief(None, &entries, 500)
    };
    run(summarize_with_fallback(Some(&summarizer), &brief, 10_000))
}

#[test]
fn a_summary_is_asked_for_and_accepted() {
    for wire in WIRES {
        let mock = start([]);
        let pins = noted(&["The customer id is 99-A"]);
        let outcome = summarize(&mock, wire, &pins);
        assert_eq!(
            (outcome.by.as_str(), outcome.rejection),
            ("model-max", None),
            "{wire:?}"
        );
        assert_eq!(outcome.warnings, Vec::<String>::new());
        assert_eq!(
            outcome.generated.summary.facts[0],
            "The customer id is 99-A"
        );
        assert_eq!(outcome.generated.summary.files_touched, ["src/main.rs"]);
        assert_eq!(outcome.generated.usage.unwrap().total(), 120);

        let asked = mock.requests().remove(0);
        assert!(asked.system().starts_with("You write the summary"));
        assert!(asked.last_user_text().contains("Postgres 16"));
        let json = match wire {
            ApiProtocol::Chat => &asked.body["response_format"]["type"],
            ApiProtocol::Responses => &asked.body["text"]["format"]["type"],
            ApiProtocol::Anthropic | ApiProtocol::Gemini => continue,
        };
        assert_eq!(json, "json_object");
    }
}

#[test]
fn a_summary_that_breaks_off_is_asked_for_again() {
    let mock = start([
        Reply::fault(Fault::Status(500)),
        Reply::fault(Fault::Disconnect { after: 2 }),
    ]);
    let outcome = summarize(&mock, ApiProtocol::Anthropic, &[]);
    assert_eq!(outcome.by, "model-max");
    assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
    assert!(outcome.warnings[0].contains("the answer was interrupted"));
    assert_eq!(
        outcome.generated.usage.unwrap().input,
        200,
        "half an answer costs too"
    );
    assert_eq!(mock.requests().len(), 3);
}

#[test]
fn a_summary_that_grew_too_long_is_not_taken() {
    let long = Reply {
        stop: Some("max_tokens".into()),
        ..Reply::text("{\"background\": \"half\"}")
    };
    let mock = start([long.clone(), long]);
    let outcome = summarize(&mock, ApiProtocol::Anthropic, &[]);
    assert_eq!(outcome.by, "extractive");
    assert!(outcome.warnings[0].contains("the answer was cut off"));
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn a_wrong_key_is_not_tried_twice() {
    let mock = start([Reply::fault(Fault::WrongKey)]);
    let outcome = summarize(&mock, ApiProtocol::Chat, &[]);
    assert_eq!(outcome.by, "extractive");
    assert!(
        outcome.warnings[0].contains("SOME_API_KEY"),
        "{:?}",
        outcome.warnings
    );
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_summary_that_does_not_come_is_not_waited_for() {
    let mock = start([Reply::fault(Fault::Hang)]);
    let summarizer = ModelSummarizer::new(provider(&mock, ApiProtocol::Chat))
        .with_timeout(Duration::from_millis(60));
    let entries = conversation();
    let error = run(summarizer.summarize(&brief(None, &entries, 500))).unwrap_err();
    assert!(matches!(error, SummarizeError::TimedOut(_)));
}
