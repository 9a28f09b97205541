//! Model replies in the chat: streaming, cost, and cancellation.

use std::time::Duration;

use throughline_mock_provider::{Reply, TokenUsage};

use crate::assert_screen;
use crate::harness::Tl;
use crate::provider::{
    ANTHROPIC, OPENAI, RequestPurpose, WIRE_FORMATS, purpose, start_provider,
    start_provider_by_purpose, summary_reply, wait_for_request,
};
use crate::pty::CTRL_C;

const MARKDOWN: &str = "\
# A token bucket

It holds **tokens**, and each request takes one; see `src/limiter.rs` for what happens when there are none left.

- refilled at a *steady* rate
- never fuller than its size

```rust
fn take(&mut self) -> bool {
    self.tokens > 0
}
```

| size | burst |
|---|---|
| 10 | 10 |
";

#[test]
fn an_answer_is_rendered_while_it_comes_and_its_cost_is_shown() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let answer = Reply {
            usage: TokenUsage {
                input: 12_000,
                output: 345,
                cache_read: 8_000,
                cache_write: 0,
            },
            ..Reply::text(MARKDOWN)
        };
        let provider = start_provider([answer]);
        let mut chat = tl.connected_terminal(&[], &provider, wire).start_ready();
        chat.send_line("What is a token bucket?");
        assert_eq!(chat.exit(), Some(0));
        assert_screen!(format!("answer_{}", wire.name), chat.scrollback());
    }
}

#[test]
fn an_answer_appears_as_it_comes() {
    let tl = Tl::new();
    let slow = "The first paragraph is here.\n\nThe second one never ends. ".to_owned()
        + &"And on and on. ".repeat(400);
    let slow = Reply::text(slow).with_delay(Duration::from_millis(30));
    let provider = start_provider([slow]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.type_line("Tell me something long");
    chat.wait_for("The first paragraph is here.");
    // Text is shown before its paragraph is complete.
    chat.wait_for("The second one never ends. And on");
    chat.send_keys(CTRL_C);
    chat.wait_for_prompt();
    let seen = chat.scrollback();
    assert!(
        seen.contains("Stopped; the partial answer is saved."),
        "{seen}"
    );
    // Nothing drawn while streaming is left behind.
    assert_eq!(seen.matches("never ends").count(), 1, "{seen}");
}

#[test]
fn ctrl_c_stops_an_answer_and_keeps_what_came() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let slow =
            "A token bucket holds tokens.\n\n".to_owned() + &"And on and on.\n\n".repeat(400);
        let slow = Reply::text(slow).with_delay(Duration::from_millis(40));
        let provider = start_provider([slow, Reply::text("It holds tokens.")]);
        let mut chat = tl.connected_terminal(&[], &provider, wire).start_ready();
        chat.send_line("/rename limiter");
        chat.type_line("What is a token bucket?");
        chat.wait_for("A token bucket holds tokens.");
        chat.send_keys(CTRL_C);
        chat.wait_for_prompt();
        let screen = chat.screen();
        assert!(
            screen.contains("Stopped; the partial answer is saved."),
            "{screen}"
        );
        chat.send_line("In short?");
        assert!(
            chat.screen().contains("It holds tokens."),
            "{}",
            chat.screen()
        );
        assert_eq!(chat.exit(), Some(0));

        let shown = tl.json(&["show", "limiter", "--all"]);
        let answers = shown["entries"].as_array().unwrap().iter();
        let answers: Vec<_> = answers
            .filter(|entry| entry["role"] == "assistant")
            .collect();
        assert_eq!(answers[0]["incomplete"], true, "{shown:#}");
        let kept = answers[0]["content"].as_str().unwrap();
        assert!(kept.starts_with("A token bucket holds tokens."), "{kept}");
        assert_eq!(answers[1]["incomplete"], serde_json::Value::Null);
        assert!(tl.ok(&["show", "limiter"]).contains("cut off"));
    }
}

#[test]
fn what_is_typed_while_an_answer_comes_stands_at_the_next_prompt() {
    let tl = Tl::new();
    let slow = Reply::text("It holds tokens, and gives them out one by one.");
    let provider = start_provider([slow.with_delay(Duration::from_millis(30))]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.type_line("What is a token bucket?");
    wait_for_request(&provider);
    chat.send_keys("and then?");
    chat.wait_for_prompt();
    chat.wait_for_end("You: and then?");
    let seen = chat.scrollback();
    assert_eq!(seen.matches("and then?").count(), 1, "{seen}");
}

#[test]
fn ctrl_c_before_a_word_came_leaves_the_question_to_be_asked_again() {
    let tl = Tl::new();
    let slow = Reply::text("Too late.").with_delay(Duration::from_secs(60));
    let provider = start_provider([slow, Reply::text("It holds tokens.")]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.type_line("What is a token bucket?");
    chat.wait_for("thinking");
    wait_for_request(&provider);
    chat.send_keys(CTRL_C);
    chat.wait_for_prompt();
    chat.send_line("/retry");
    chat.exit();
    assert_screen!("stopped_before", chat.scrollback());
}

#[test]
fn the_model_is_changed_in_the_chat() {
    let tl = Tl::new();
    let provider = start_provider([
        Reply::text("From the first."),
        Reply::text("From the second."),
    ]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .env(OPENAI.key, crate::provider::KEY)
        .env(OPENAI.address, &provider.url())
        .start_ready();
    chat.send_line("Hello");
    chat.send_line("/model");
    chat.send_line("/model openai/gpt-5");
    chat.send_line("Hello");
    chat.send_line("/model offline");
    chat.send_line("what tasks are open?");
    assert_screen!("model_changed", chat.scrollback());
    let models: Vec<_> = provider
        .requests()
        .iter()
        .filter(|request| purpose(request) == RequestPurpose::Answer)
        .map(|request| request.model().to_owned())
        .collect();
    assert_eq!(models, ["claude-sonnet-5-5", "gpt-5"]);
}

#[test]
fn a_session_is_named_by_the_model_once() {
    let tl = Tl::new();
    let provider = start_provider([]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("And how do I test it?");
    chat.send_line("And then?");
    chat.exit();
    let asked = provider.requests();
    let titles = asked
        .iter()
        .filter(|request| purpose(request) == RequestPurpose::Title);
    assert_eq!(titles.count(), 1);
    assert_eq!(
        tl.json(&["show", "last"])["session"]["name"],
        "rate-limiter"
    );
}

#[test]
fn a_session_is_named_by_its_words_where_the_model_fails_or_rambles() {
    use throughline_mock_provider::Fault;
    let titles: [fn() -> Reply; 2] = [
        || Reply::fault(Fault::WrongKey),
        || Reply::text("Certainly! Here is a good name for the conversation you gave me."),
    ];
    for title in titles {
        let tl = Tl::new();
        let provider = start_provider_by_purpose([], title, summary_reply);
        let mut chat = tl
            .connected_terminal(&[], &provider, ANTHROPIC)
            .start_ready();
        chat.send_line("How do I limit the rate of requests?");
        chat.exit();
        let name = &tl.json(&["show", "last"])["session"]["name"];
        assert_eq!(name, "limit-rate-requests");
    }
}

#[test]
fn a_name_that_a_person_gave_stays() {
    let tl = Tl::new();
    let provider = start_provider([]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("/rename my own");
    chat.send_line("How do I limit the rate of requests?");
    chat.send_line("/fork");
    chat.send_line("What about bursts?");
    chat.send_line("/merge");
    chat.exit();
    assert_eq!(tl.json(&["show", "last"])["session"]["name"], "my-own");
}

#[test]
fn the_model_summarizes_on_exit_and_in_compaction() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider =
            start_provider([Reply::text("A bucket."), Reply::text("Ready to continue.")]);
        let mut chat = tl
            .connected_terminal(&["--policy", "chain"], &provider, wire)
            .start_ready();
        chat.send_line("How do I limit the rate of requests?");
        chat.send_line("compact");
        chat.send_line("And then?");
        assert_eq!(chat.exit(), Some(0));
        assert_screen!(format!("model_summaries_{}", wire.name), chat.scrollback());
        let shown = tl.ok(&["show", "last", "--all"]);
        assert!(shown.contains(&format!("({})", wire.model)), "{shown}");
    }
}

#[test]
fn a_summary_that_fails_is_made_without_the_model_and_reported() {
    use throughline_mock_provider::Fault;
    let tl = Tl::new();
    let provider = start_provider_by_purpose(
        [],
        || Reply::text("rate limiter"),
        || Reply::fault(Fault::Status(400)),
    );
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("We decided to use a token bucket for the limiter.");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("summary_failed", chat.scrollback());
    assert!(tl.ok(&["show", "last", "--all"]).contains("(extractive)"));
}

#[test]
fn ctrl_c_stops_a_summary_and_the_chat_goes_on() {
    use throughline_mock_provider::Fault;
    let tl = Tl::new();
    let provider = start_provider_by_purpose(
        [],
        || Reply::text("rate limiter"),
        || Reply::fault(Fault::Hang),
    );
    let args = ["--with", "keep=1 messages"];
    let mut chat = tl
        .connected_terminal(&args, &provider, ANTHROPIC)
        .start_ready();
    for n in 0..4 {
        chat.send_line(&format!(
            "We decided on step {n} of the plan, of which there are many."
        ));
    }
    chat.type_line("/compact");
    chat.wait_for("summarizing");
    chat.send_keys(CTRL_C);
    chat.wait_for_prompt();
    let screen = chat.screen();
    assert!(
        screen.contains("Stopped; no summary was written."),
        "{screen}"
    );
    assert!(!screen.contains("⠁ summarizing"), "{screen}");
    chat.send_line("And then?");
    assert_eq!(tl.json(&["show", "last"])["session"]["compactions"], 0);
}
