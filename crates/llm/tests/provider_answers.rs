//! Tests that a provider's answer is received completely.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod talk;

use std::time::Duration;

use serde_json::json;
use talk::{WIRES, provider, run, say_hello, start};
use throughline_llm::{ApiProtocol, Delta, FinishReason, Model, ModelRequest};
use throughline_mock_provider::{Reply, ReplyBlock, TokenUsage};
use throughline_model::{Block, Content, Json, ToolCall, Usage};

fn texts(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn call(id: &str, input: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: Json::parse(input).unwrap(),
    }
}

#[test]
fn an_answer_is_streamed_word_by_word_and_given_whole() {
    for wire in WIRES {
        let mut reply = Reply::text("Hello there, my friend.");
        reply.usage = TokenUsage {
            input: 1_000,
            output: 5,
            cache_read: 600,
            cache_write: 300,
        };
        let mock = start([reply]);
        let (answer, deltas) = say_hello(&mock, wire);
        let answer = answer.unwrap();
        assert_eq!(
            answer.content,
            Content::text("Hello there, my friend."),
            "{wire:?}"
        );
        assert_eq!(texts(&deltas), "Hello there, my friend.");
        assert_eq!(deltas.len(), 4);
        assert_eq!(answer.finish_reason, FinishReason::Completed);
        assert_eq!(answer.model.as_deref(), Some("model-max"), "{wire:?}");
        let usage = Usage {
            input: 1_000,
            output: 5,
            cache_read: 600,
            // Gemini does not report it.
            cache_write: if wire == ApiProtocol::Gemini { 0 } else { 300 },
        };
        assert_eq!(answer.usage, Some(usage), "{wire:?}");
    }
}

#[test]
fn thinking_and_tool_calls_keep_their_order_and_their_signatures() {
    for wire in WIRES {
        let reply = Reply::default()
            .with_block(ReplyBlock::Thinking {
                text: "I should look.".into(),
                signature: "signed==".into(),
            })
            .with_block(ReplyBlock::Text("Let me see.".into()))
            .and_call("call_1", "read", json!({"path": "a.rs"}))
            .and_call("call_2", "read", json!({}));
        let mock = start([reply]);
        let (answer, deltas) = say_hello(&mock, wire);
        let answer = answer.unwrap();
        // Gemini's calls have no ids.
        let ids = match wire {
            ApiProtocol::Gemini => ["call#read#0", "call#read#0#3"],
            _ => ["call_1", "call_2"],
        };
        let signature = (wire != ApiProtocol::Chat).then(|| "signed==".to_owned());
        let blocks = vec![
            Block::Thinking {
                text: "I should look.".into(),
                signature,
            },
            Block::Text("Let me see.".into()),
            Block::ToolCall(call(ids[0], r#"{"path":"a.rs"}"#)),
            Block::ToolCall(call(ids[1], "{}")),
        ];
        assert_eq!(answer.content, Content(blocks), "{wire:?}");
        assert_eq!(answer.finish_reason, FinishReason::ToolUse);
        let calls: Vec<&Delta> = deltas
            .iter()
            .filter(|delta| matches!(delta, Delta::ToolCall(_)))
            .collect();
        let whole = [call(ids[0], r#"{"path":"a.rs"}"#), call(ids[1], "{}")];
        assert_eq!(calls, whole.map(Delta::ToolCall).iter().collect::<Vec<_>>());
        assert!(matches!(&deltas[0], Delta::Thinking(text) if text.starts_with("I ")));
    }
}

#[test]
fn blocks_of_server_tools_are_kept_where_they_stood() {
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search",
        "input": {"query": "rust"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "url": "https://example.org"}]});
    let hidden = json!({"type": "redacted_thinking", "data": "opaque"});
    let reply = Reply::default()
        .with_block(ReplyBlock::Raw(hidden.clone()))
        .with_block(ReplyBlock::Text("I search. ".into()))
        .with_block(ReplyBlock::Raw(search.clone()))
        .with_block(ReplyBlock::Raw(found.clone()))
        .with_block(ReplyBlock::Text("Found.".into()));
    let mock = start([reply]);
    let (answer, deltas) = say_hello(&mock, ApiProtocol::Anthropic);
    let foreign = |value| Block::Foreign(Json::of(value).unwrap());
    let blocks = vec![
        foreign(&hidden),
        Block::Text("I search. ".into()),
        foreign(&search),
        foreign(&found),
        Block::Text("Found.".into()),
    ];
    assert_eq!(answer.unwrap().content, Content(blocks));
    assert_eq!(texts(&deltas), "I search. Found.");
}

#[test]
fn an_answer_that_grew_too_long_says_so_and_has_no_half_calls() {
    for (wire, stop) in [
        (ApiProtocol::Anthropic, "max_tokens"),
        (ApiProtocol::Chat, "length"),
        (ApiProtocol::Responses, "incomplete"),
        (ApiProtocol::Gemini, "MAX_TOKENS"),
    ] {
        let mut reply = Reply::text("On and on");
        if wire == ApiProtocol::Chat {
            reply = reply.with_block(ReplyBlock::Raw(json!({"tool_calls": [
                {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"pa"}}
            ]})));
        }
        reply.stop = Some(stop.into());
        let mock = start([reply]);
        let answer = say_hello(&mock, wire).0.unwrap();
        assert_eq!(
            (answer.finish_reason, answer.content),
            (FinishReason::Length, Content::text("On and on"))
        );
    }
}

#[test]
fn a_refusal_is_reported_in_the_models_words() {
    let refused = Reply::default().with_block(ReplyBlock::Raw(json!({"refusal": "I will not."})));
    let mock = start([refused]);
    let (answer, deltas) = say_hello(&mock, ApiProtocol::Chat);
    let answer = answer.unwrap();
    assert_eq!(
        (answer.finish_reason, answer.content),
        (FinishReason::Refused, Content::text("I will not."))
    );
    assert_eq!(texts(&deltas), "I will not.");

    let mut reply = Reply::text("No.");
    reply.stop = Some("refusal".into());
    let mock = start([reply]);
    assert_eq!(
        say_hello(&mock, ApiProtocol::Anthropic)
            .0
            .unwrap()
            .finish_reason,
        FinishReason::Refused
    );
}

#[test]
fn dropping_the_future_stops_the_answer() {
    let slow = Reply::text("one two three four five six").with_delay(Duration::from_millis(50));
    let mock = start([slow]);
    let model = provider(&mock, ApiProtocol::Anthropic);
    let messages = talk::hello();
    let asked = ModelRequest {
        messages: &messages,
        ..ModelRequest::default()
    };
    let mut count = 0;
    run(async {
        let (first, arrived) = tokio::sync::oneshot::channel();
        let mut first = Some(first);
        let mut on_delta = |_| {
            count += 1;
            first
                .take()
                .into_iter()
                .for_each(|first| first.send(()).unwrap());
        };
        tokio::select! {
            _ = model.answer(&asked, &mut on_delta) => panic!("it was to be stopped"),
            _ = arrived => {}
        }
    });
    assert!((1..6).contains(&count), "{count}");
}
