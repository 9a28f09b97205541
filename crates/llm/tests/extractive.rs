//! Tests the extractive summarizer on typical messages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{brief, call, log, noted, result, say, turns};
use throughline_llm::{ExtractiveSummarizer, SummaryRequest, estimate_summary_tokens};
use throughline_model::{Block, Body, Content, Entry, Message, Role, SessionRestore, Summary};

fn summary(entries: &[Entry]) -> Summary {
    ExtractiveSummarizer.extract(&brief(None, entries, 2_000))
}

fn list_contains(list: &[String], text: &str) -> bool {
    list.iter().any(|item| item.contains(text))
}

#[test]
fn decisions_tasks_and_facts_are_told_apart() {
    let found = summary(&turns(&[
        "I want to build a relay for webhooks. Let's use Postgres 16 for storage. Our budget is 4,200 EUR a month.",
        "Good. I've added the schema in db/schema.sql. We're blocked on the staging password.",
        "Please rename the crate to relay. Remember to update the changelog before Friday.",
        "I'm working on the connection pool right now.",
        "Next steps:\n- Write the migration guide\n- Load test with 500 users",
    ]));
    assert!(list_contains(&found.decisions, "Postgres 16"), "{found:#?}");
    assert!(list_contains(&found.facts, "4,200 EUR"));
    assert!(list_contains(&found.completed, "added the schema"));
    assert!(list_contains(&found.blockers, "staging password"));
    assert!(list_contains(&found.open_tasks, "rename the crate"));
    assert!(list_contains(&found.open_tasks, "update the changelog"));
    assert!(list_contains(&found.in_progress, "connection pool"));
    assert!(list_contains(&found.pending, "Load test with 500 users"));
    assert_eq!(found.files_touched, ["db/schema.sql"]);
}

#[test]
fn a_question_is_not_a_decision() {
    let found = summary(&turns(&[
        "Should we use Redis or Kafka for the queue?",
        "We haven't decided on the queue yet. If we go with Kafka, operations get harder.",
    ]));
    assert!(found.decisions.is_empty(), "{found:#?}");
}

#[test]
fn a_later_reversal_supersedes_a_decision() {
    let found = summary(&turns(&[
        "Let's use Redis for the session cache.",
        "Okay.",
        "Actually, let's use Memcached instead of Redis for the session cache.",
        "Fine.",
        "We'll use a 10 second timeout for uploads.",
        "Okay.",
        "We'll use a 30 second timeout for uploads.",
    ]));
    assert!(list_contains(&found.decisions, "Memcached"), "{found:#?}");
    assert!(!list_contains(&found.decisions, "Let's use Redis"));
    assert!(list_contains(&found.decisions, "30 second"));
    assert!(!list_contains(&found.decisions, "10 second"));
}

#[test]
fn a_reversal_reaches_into_the_previous_summary() {
    let before = summary(&turns(&["Let's use Redis for the session cache."]));
    let entries = turns(&["Scratch that, let's use Memcached instead of Redis for sessions."]);
    let after = ExtractiveSummarizer.extract(&brief(Some(&before), &entries, 2_000));
    assert_eq!(after.decisions.len(), 1, "{after:#?}");
    assert!(list_contains(&after.decisions, "Memcached"));
}

#[test]
fn a_task_said_done_is_completed() {
    let before = Summary {
        open_tasks: vec!["Write the migration guide for tenants".into()],
        pending: vec!["Load test the gateway with 500 users".into()],
        ..Summary::default()
    };
    let entries = turns(&[
        "Rename the crate to relay.",
        "Done.",
        "The migration guide for tenants is done.",
    ]);
    let after = ExtractiveSummarizer.extract(&brief(Some(&before), &entries, 2_000));
    assert!(after.open_tasks.is_empty(), "{after:#?}");
    assert!(list_contains(&after.completed, "Rename the crate"));
    assert!(list_contains(&after.completed, "migration guide"));
    assert!(list_contains(&after.pending, "Load test the gateway"));
}

#[test]
fn what_is_not_done_yet_stays_open() {
    let entries = turns(&[
        "We need to rotate the signing keys.",
        "The signing keys are not rotated yet.",
    ]);
    let found = summary(&entries);
    assert!(
        list_contains(&found.open_tasks, "rotate the signing keys"),
        "{found:#?}"
    );
}

#[test]
fn a_blocker_that_is_gone_blocks_no_longer() {
    let found = summary(&turns(&[
        "We're blocked on the Vault access request.",
        "Okay.",
        "The Vault access request was approved.",
    ]));
    assert!(found.blockers.is_empty(), "{found:#?}");
}

#[test]
fn code_is_not_prose_but_its_errors_count() {
    let entries = log([
        say(
            Role::User,
            "It fails:\n```rust\nlet decision = \"we decided to use tabs\";\nfn main() {}\n```\n\
             ```\nerror[E0308]: mismatched types in src/lib.rs\n```",
        ),
        call("bash", "cargo test"),
        result("we will use 77 threads\nERROR connect to 10.0.0.7 refused\ndone"),
    ]);
    let found = summary(&entries);
    assert!(found.decisions.is_empty(), "{found:#?}");
    assert!(list_contains(
        &found.facts,
        "error[E0308]: mismatched types in src/lib.rs"
    ));
    assert!(list_contains(&found.facts, "10.0.0.7 refused"));
    assert!(!found.to_block().contains("77 threads"));
}

#[test]
fn the_same_thing_is_said_once_but_no_figure_is_lost() {
    let found = summary(&turns(&[
        "Hello there",
        "Hello!",
        "The import limit is 500 rows per request for the tenant Acme.",
        "Right, the import limit is 500 rows per request for the tenant Acme.",
        "The export limit is 900 rows per request for the tenant Acme.",
    ]));
    assert_eq!(found.facts.len(), 2, "{found:#?}");
    assert!(list_contains(&found.facts, "500") && list_contains(&found.facts, "900"));
}

#[test]
fn an_answer_that_was_cut_off_loses_its_last_sentence() {
    let mut message = Message::text(
        Role::Assistant,
        "We decided to use Kafka for events. We decided to use 12 parti",
    );
    message.incomplete = true;
    let found = summary(&log([Body::Message(message)]));
    assert!(list_contains(&found.decisions, "Kafka"));
    assert!(!found.to_block().contains("parti"), "{found:#?}");
}

#[test]
fn pins_and_standing_decisions_are_always_there() {
    let pins = noted(&["The customer id is 99-A", "Never deploy on\nFridays"]);
    let decisions = noted(&["Use tabs <!-- really -->"]);
    for budget in [0, 1, 60, 2_000] {
        let brief = SummaryRequest {
            pins: &pins,
            decisions: &decisions,
            ..brief(None, &[], budget)
        };
        let summary = ExtractiveSummarizer.extract(&brief);
        assert_eq!(
            throughline_llm::check_summary(&summary, &brief, 100_000),
            Ok(())
        );
    }
}

#[test]
fn the_background_condenses_what_came_before() {
    let first = summary(&turns(&[
        "I want to migrate the billing service from Stripe to Adyen.",
        "Which parts of the billing service?",
    ]));
    assert_eq!(first.background, "");
    let second =
        ExtractiveSummarizer.extract(&brief(Some(&first), &turns(&["Let's go on."]), 2_000));
    assert!(
        second
            .background
            .starts_with("I want to migrate the billing service")
    );
    let third = ExtractiveSummarizer.extract(&brief(Some(&second), &turns(&["And on."]), 2_000));
    assert!(
        third
            .background
            .starts_with("I want to migrate the billing service")
    );
}

#[test]
fn a_continued_session_starts_from_the_summary_it_was_given() {
    let parent = Summary {
        decisions: vec!["Use token bucket with Redis backing".into()],
        ..Summary::default()
    };
    let restored = SessionRestore {
        from: "s1".parse().unwrap(),
        prompt: format!("You continue.\n\n{}", parent.to_block()),
        acknowledgement: None,
        transcript: None,
        usage: None,
        latency_ms: None,
    };
    let found = summary(&log([
        Body::Restored(restored),
        say(Role::User, "Hello there"),
    ]));
    assert_eq!(found.decisions, parent.decisions);
}

#[test]
fn nothing_new_loses_nothing_old() {
    let first = summary(&turns(&[
        "Let's use Postgres 16. The budget is 4,200 EUR. TODO: call Anna on Monday.",
        "I fixed src/a.rs. Waiting for the invoice INV-7.",
    ]));
    let again = ExtractiveSummarizer.extract(&brief(Some(&first), &[], 2_000));
    for (old, new) in [
        (&first.decisions, &again.decisions),
        (&first.facts, &again.facts),
        (&first.open_tasks, &again.open_tasks),
        (&first.completed, &again.completed),
        (&first.blockers, &again.blockers),
        (&first.files_touched, &again.files_touched),
    ] {
        assert_eq!(old, new);
    }
}

#[test]
fn thinking_and_foreign_blocks_are_skipped() {
    let content = Content(vec![
        Block::Thinking {
            text: "We decided to hide the outage.".into(),
            signature: None,
        },
        Block::Text("We decided to report the outage.".into()),
    ]);
    let found = summary(&log([Body::Message(Message::new(
        Role::Assistant,
        content,
    ))]));
    assert_eq!(found.decisions, ["We decided to report the outage."]);
}

#[test]
fn ten_thousand_messages_take_no_time_to_speak_of() {
    let scripts = common::scripts();
    let bodies = scripts.iter().flat_map(|script| &script.entries);
    let entries = log(bodies.cycle().take(10_000).enumerate().map(|(at, entry)| {
        let mut body = entry.body.clone();
        if let Body::Message(message) = &mut body {
            // All different, so that nothing is saved as a duplicate.
            message.content.0.push(Block::Text(format!(
                "Item {at} costs {at} EUR in batch b{at}."
            )));
        }
        body
    }));
    let start = std::time::Instant::now();
    let found = ExtractiveSummarizer.extract(&brief(None, &entries, 4_000));
    let took = start.elapsed();
    println!("10,000 messages in {took:?}");
    assert!(estimate_summary_tokens(&found) <= 4_400);
    let limit = if cfg!(debug_assertions) { 30.0 } else { 2.0 };
    assert!(took.as_secs_f64() < limit, "{took:?}");
}

#[test]
fn small_talk_still_comes_to_something() {
    let found = summary(&turns(&["Hello there, how are you?", "Fine."]));
    assert_eq!(found.topics, ["Hello there, how are you?"]);
}

#[test]
fn what_the_offline_agent_repeats_is_not_said_twice() {
    let mut answer = Message::text(Role::Assistant, "We decided to use Kafka.");
    answer.model = Some(throughline_llm::OFFLINE_MODEL.to_owned());
    let found = summary(&log(vec![
        say(Role::User, "Which queue did we choose?"),
        Body::Message(answer),
    ]));
    assert!(found.decisions.is_empty(), "{found:#?}");
}
