//! Tests the errors of providers: their classification, their messages and retries.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod talk;

use std::time::{Duration, Instant};

use talk::{KEY, WIRES, ask, connection, hello, quick, say_hello, start};
use throughline_llm::{
    ApiProtocol, Delta, FinishReason, ModelEndpoint, ModelError, ModelErrorKind, ModelRequest,
    PartialAnswer, Provider, ResponseFormat, SamplingOptions, Secret,
};
use throughline_mock_provider::{Fault, MockProvider, Reply, Script};
use throughline_model::Content;

fn fail_with(fault: &Fault, wire: ApiProtocol) -> (PartialAnswer, Vec<Delta>, usize) {
    let replies = std::iter::repeat_n(Reply::fault(fault.clone()), 5);
    let mock = start(replies);
    let (answer, deltas) = say_hello(&mock, wire);
    let broken = answer.unwrap_err();
    let shown = format!("{broken} {broken:?} {deltas:?}");
    assert!(
        !shown.contains(KEY) && !shown.contains("127.0.0.1"),
        "{shown}"
    );
    (broken, deltas, mock.requests().len())
}

fn count_retries(deltas: &[Delta]) -> usize {
    deltas
        .iter()
        .filter(|delta| matches!(delta, Delta::Retry { .. }))
        .count()
}

#[test]
fn a_wrong_key_names_where_the_key_came_from() {
    for wire in WIRES {
        let mock = start([]);
        let wrong = ModelEndpoint {
            key: Secret::new("sk-other"),
            ..connection(&mock, wire)
        };
        let model = Provider::new(wrong, quick(), 7).unwrap();
        let messages = hello();
        let asked = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        let (answer, deltas) = ask(&model, &asked);
        let error = answer.unwrap_err().error;
        assert!(
            error.to_string().ends_with("the API key from SOME_API_KEY"),
            "{error}"
        );
        assert_eq!(
            (error.kind(), error.is_permanent()),
            (ModelErrorKind::Key, true)
        );
        assert_eq!((deltas.len(), mock.requests().len()), (0, 1), "one request");
    }
}

#[test]
fn an_overlong_request_says_by_how_much() {
    for wire in WIRES {
        let (broken, _, asked) = fail_with(&Fault::TooLong, wire);
        assert_eq!(asked, 1);
        assert!(
            matches!(
                broken.error,
                ModelError::TooLong {
                    tokens: Some(215_431),
                    window: Some(200_000),
                    ..
                }
            ),
            "{:?}",
            broken.error
        );
    }
}

#[test]
fn an_unknown_model_is_named() {
    for wire in WIRES {
        let (broken, ..) = fail_with(&Fault::NoSuchModel, wire);
        assert_eq!(broken.error.kind(), ModelErrorKind::NotFound);
        assert!(
            broken.to_string().contains(r#"no model "model-max""#),
            "{broken}"
        );
    }
}

#[test]
fn a_rate_limit_is_waited_out_as_asked() {
    for wire in WIRES {
        let limited = Fault::RateLimited {
            retry_after: Some("0.03".into()),
        };
        let mock = start([Reply::fault(limited), Reply::text("At last.")]);
        let began = Instant::now();
        let (answer, deltas) = say_hello(&mock, wire);
        assert_eq!(answer.unwrap().content, Content::text("At last."));
        assert!(began.elapsed() >= Duration::from_millis(30));
        assert_eq!(
            deltas[0],
            Delta::Retry {
                after: Duration::from_millis(30),
                reason: format!(
                    "rate limited by {} (retry after 1 s)",
                    connection(&mock, wire).provider
                ),
                attempt: 1,
            }
        );
    }
}

#[test]
fn a_retry_after_beyond_max_wait_is_not_waited_for() {
    let limited = Fault::RateLimited {
        retry_after: Some("3600".into()),
    };
    let (broken, deltas, asked) = fail_with(&limited, ApiProtocol::Anthropic);
    assert_eq!((count_retries(&deltas), asked), (0, 1));
    assert!(
        matches!(broken.error, ModelError::RateLimited { retry_after: Some(wait), .. }
            if wait == Duration::from_secs(3600))
    );
}

#[test]
fn a_broken_server_is_tried_again_and_then_no_more() {
    for wire in WIRES {
        for fault in [
            Fault::Status(500),
            Fault::Status(529),
            Fault::RateLimited { retry_after: None },
            Fault::Overloaded { after: 0 },
            Fault::Disconnect { after: 0 },
        ] {
            let (broken, deltas, asked) = fail_with(&fault, wire);
            assert_eq!(
                (count_retries(&deltas), asked),
                (2, 3),
                "{wire:?} {fault:?}"
            );
            assert!(!broken.error.is_permanent());
            assert_eq!(broken.content, Content::default());
        }
        let mock = start([Reply::fault(Fault::Status(503)), Reply::text("Back.")]);
        let (answer, deltas) = say_hello(&mock, wire);
        assert_eq!(
            (answer.unwrap().finish_reason, count_retries(&deltas)),
            (FinishReason::Completed, 1)
        );
    }
}

#[test]
fn an_answer_that_breaks_off_keeps_what_arrived_and_is_not_repeated() {
    for wire in WIRES {
        for fault in [
            Fault::Disconnect { after: 3 },
            Fault::EndEarly { after: 3 },
            Fault::Overloaded { after: 3 },
        ] {
            let (broken, deltas, asked) = fail_with(&fault, wire);
            assert_eq!(
                (count_retries(&deltas), asked),
                (0, 1),
                "{wire:?} {fault:?}"
            );
            assert_eq!(
                broken.content,
                Content::text("These words may "),
                "{wire:?} {fault:?}"
            );
            let expected = match fault {
                Fault::Overloaded { .. } => ModelErrorKind::Unavailable,
                _ => ModelErrorKind::Incomplete,
            };
            assert_eq!(broken.error.kind(), expected, "{wire:?} {fault:?}");
            let known = broken.usage.map(|usage| usage.input);
            // The others report usage at the end.
            let is_early = matches!(wire, ApiProtocol::Anthropic | ApiProtocol::Gemini);
            assert_eq!(known, is_early.then_some(100));
        }
    }
}

#[test]
fn half_a_tool_call_is_no_call() {
    for wire in [ApiProtocol::Anthropic, ApiProtocol::Chat] {
        let reply = Reply {
            fault: Some(Fault::Disconnect { after: 2 }),
            ..Reply::text("Wait:").and_call("c1", "read", serde_json::json!({"path": "a"}))
        };
        let mock = start([reply]);
        let broken = say_hello(&mock, wire).0.unwrap_err();
        assert_eq!(broken.content, Content::text("Wait:"), "{wire:?}");
    }
}

#[test]
fn what_makes_no_sense_is_reported_as_such() {
    for wire in WIRES {
        for fault in [Fault::BadJson, Fault::HtmlPage] {
            let (broken, _, asked) = fail_with(&fault, wire);
            assert_eq!(
                broken.error.kind(),
                ModelErrorKind::Invalid,
                "{wire:?} {broken:?}"
            );
            assert_eq!(asked, 1);
        }
    }
}

#[test]
fn silence_is_not_waited_for() {
    for wire in WIRES {
        for (fault, so_far) in [
            (Fault::Hang, Content::default()),
            (Fault::Stall { after: 1 }, Content::text("These ")),
        ] {
            let mock = start([Reply::fault(fault.clone())]);
            let mut timing = quick();
            timing.first_byte = Duration::from_millis(150);
            timing.idle = Duration::from_millis(150);
            let model = Provider::new(connection(&mock, wire), timing, 7).unwrap();
            let messages = hello();
            let asked = ModelRequest {
                messages: &messages,
                ..ModelRequest::default()
            };
            let broken = ask(&model, &asked).0.unwrap_err();
            assert!(
                matches!(broken.error, ModelError::TimedOut),
                "{wire:?} {fault:?}"
            );
            assert_eq!(broken.content, so_far);
        }
    }
}

#[test]
fn slow_is_not_silent() {
    let words = "slow but steady wins the race in the end";
    let reply = Reply::text(words).with_delay(Duration::from_millis(50));
    let mock = start([reply]);
    let mut timing = quick();
    timing.idle = Duration::from_millis(350);
    let model = Provider::new(connection(&mock, ApiProtocol::Chat), timing, 7).unwrap();
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        ..ModelRequest::default()
    };
    assert_eq!(
        ask(&model, &asked).0.unwrap().finish_reason,
        FinishReason::Completed
    );
}

#[test]
fn nobody_there_is_no_network() {
    let gone = start([]);
    let at = connection(&gone, ApiProtocol::Anthropic);
    drop(gone);
    let model = Provider::new(at, quick(), 7).unwrap();
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        ..ModelRequest::default()
    };
    let (answer, deltas) = ask(&model, &asked);
    let error = answer.unwrap_err().error;
    assert_eq!(error.to_string(), "anthropic is unreachable");
    assert_eq!(count_retries(&deltas), 2);
    assert!(!format!("{error:?}").contains("127.0.0.1"));
}

#[test]
fn a_server_that_cannot_be_held_to_json_is_asked_without() {
    let mock = start([Reply::fault(Fault::NoJsonMode), Reply::text("{}")]);
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        options: &SamplingOptions {
            format: ResponseFormat::JsonIfPossible,
            ..SamplingOptions::NONE
        },
        ..ModelRequest::default()
    };
    let (answer, deltas) = ask(&talk::provider(&mock, ApiProtocol::Chat), &asked);
    assert_eq!(
        (answer.unwrap().content, deltas.len()),
        (Content::text("{}"), 1)
    );
    let formats: Vec<bool> = mock
        .requests()
        .iter()
        .map(|request| request.body["response_format"]["type"] == "json_object")
        .collect();
    assert_eq!(formats, [true, false]);
}

#[test]
fn json_that_was_promised_is_not_given_up() {
    let mock = start([Reply::fault(Fault::NoJsonMode), Reply::text("Sure!")]);
    let messages = hello();
    let asked = ModelRequest {
        messages: &messages,
        options: &SamplingOptions {
            format: ResponseFormat::Json,
            ..SamplingOptions::NONE
        },
        ..ModelRequest::default()
    };
    let (answer, _) = ask(&talk::provider(&mock, ApiProtocol::Chat), &asked);
    assert_eq!(answer.unwrap_err().error.kind(), ModelErrorKind::Refused);
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_server_of_ones_own_needs_no_key() {
    for wire in WIRES {
        let mock = MockProvider::start(Script::default()).unwrap();
        let open = ModelEndpoint {
            key: None,
            ..connection(&mock, wire)
        };
        let model = Provider::new(open, quick(), 7).unwrap();
        let messages = hello();
        let asked = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        let reply = ask(&model, &asked)
            .0
            .unwrap()
            .content
            .to_text()
            .into_owned();
        assert_eq!(
            reply, "You said “Hello?”, and I am only a stand-in.",
            "{wire:?}"
        );
        assert!(!mock.requests()[0].has_key);
    }
}
