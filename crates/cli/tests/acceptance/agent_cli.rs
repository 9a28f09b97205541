//! Acceptance tests for the agent CLI: sessions by id and name, an index, the last session
//! for `--continue`, and a limit on the number of sessions.

use throughline_mock_provider::Reply;

use crate::harness::Tl;
use crate::provider::{ANTHROPIC, RequestPurpose, purpose, start_provider};
use crate::steps::{append_exchanges, list_sessions, run_chat, session_info};

#[test]
fn conversations_are_saved_and_restored_across_invocations() {
    let tl = Tl::new();
    run_chat(&tl, &[], &["We decided to use Redis."]);
    let screen = run_chat(&tl, &["--continue"], &["what was decided?"]);
    assert!(screen.contains("- We decided to use Redis."), "{screen}");
}

#[test]
fn listing_does_not_need_the_sessions_themselves() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "long", 50);
    let listed = &list_sessions(&tl)[0];
    assert_eq!(listed["id"], id.as_str());
    assert_eq!(listed["messages"], 100);
    assert!(listed["preview"].as_str().unwrap().starts_with("Step 1:"));
}

#[test]
fn a_session_has_its_metadata() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("It holds tokens.")]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.send_line(&"What is a token bucket? ".repeat(20));
    chat.exit();
    tl.ok(&["describe", "last", "Working on the limiter"]);
    let card = session_info(&tl, "last");
    assert_eq!(card["description"], "Working on the limiter");
    assert_eq!(card["messages"], 2);
    assert_eq!(card["provider"], "anthropic");
    assert_eq!(card["model"], "claude-sonnet-5-5");
    assert_eq!(card["preview"].as_str().unwrap().chars().count(), 200);
    assert!(card["created_at"].as_str() <= card["last_activity"].as_str());
}

#[test]
fn session_ids_are_timestamps_with_a_random_suffix() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "one", 0);
    let parts: Vec<_> = id.split('-').collect();
    assert_eq!(parts.len(), 8, "{id}");
    assert!(
        parts[..7].iter().all(|part| part.parse::<u32>().is_ok()),
        "{id}"
    );
    assert!(
        id < append_exchanges(&tl, "two", 0),
        "they are in the order they were made"
    );
}

#[test]
fn custom_names_are_sanitized() {
    let tl = Tl::new();
    run_chat(&tl, &[], &["Hello", "/rename  --My Custom  Session!! "]);
    assert_eq!(session_info(&tl, "last")["name"], "my-custom-session");
}

#[test]
fn reserved_names_cannot_be_used() {
    let tl = Tl::new();
    for name in [
        "index",
        "metadata",
        "last_session",
        "con",
        "prn",
        "aux",
        "nul",
        "com1",
        "lpt4",
    ] {
        let said = tl.run(&["new", "--name", name]);
        assert_ne!(said.code(), Some(0), "{said}");
    }
    assert_eq!(list_sessions(&tl).len(), 0);
}

#[test]
fn path_traversal_is_prevented() {
    let tl = Tl::new();
    for name in ["..", "../x", "a/b", "a\\b"] {
        let said = tl.run(&["new", "--name", name]);
        assert_ne!(said.code(), Some(0), "{said}");
    }
    let mut chat = tl.chat(&[]);
    chat.send_line("/rename ../../etc/passwd");
    assert!(
        chat.screen().contains("looks like a path"),
        "{}",
        chat.screen()
    );
}

#[test]
fn continue_takes_the_last_session() {
    let tl = Tl::new();
    append_exchanges(&tl, "first", 1);
    append_exchanges(&tl, "second", 1);
    run_chat(&tl, &["--resume", "first"], &["And more."]);
    let chat = tl.chat(&["--continue"]);
    assert!(
        chat.screen().contains("Session: first"),
        "{}",
        chat.screen()
    );
}

#[test]
fn a_context_summary_is_shown_to_the_person_and_not_to_the_model() {
    let tl = Tl::new();
    append_exchanges(&tl, "limiter", 2);
    tl.ok(&["describe", "limiter", "Working on the limiter"]);
    let provider = start_provider([]);
    let mut chat = tl
        .connected_terminal(&["--continue"], &provider, ANTHROPIC)
        .start_ready();
    let screen = chat.screen();
    for line in [
        "You are resuming a previous conversation session.",
        "Session: limiter",
        "Created: YYYY-MM-DDThh:mm:ss.mmmZ",
        "Last activity: YYYY-MM-DDThh:mm:ss.mmmZ",
        "Total messages: 4 (2 from user, 2 from assistant)",
        "Description: Working on the limiter",
        "First topic: Step 1: please look at src/part_1.rs and tell me about it",
        "The conversation history follows. Continue naturally from where you left off.",
    ] {
        assert!(chat.scrollback().contains(line), "{line}\n{screen}");
    }
    chat.send_line("And then?");
    let requests = provider.requests();
    let asked = requests
        .iter()
        .rfind(|r| purpose(r) == RequestPurpose::Answer)
        .unwrap();
    let whole = asked.body.to_string();
    assert!(!whole.contains("You are resuming"), "{whole}");
    assert!(
        whole.contains("Step 1:") && whole.contains("Step 2:"),
        "the history itself"
    );
}

#[test]
fn the_oldest_sessions_beyond_the_limit_are_removed() {
    let tl = Tl::new();
    for n in 0..5 {
        append_exchanges(&tl, &format!("s{n}"), 1);
    }
    tl.ok(&["append", "s0", "still in use"]);
    let chat = tl
        .terminal(&["--new"])
        .env("TL_MAX_SESSIONS", "3")
        .start_ready();
    assert!(
        chat.screen().contains("Moved 2 sessions to the trash"),
        "{}",
        chat.screen()
    );
    let listed = list_sessions(&tl);
    let left: Vec<_> = listed
        .iter()
        .map(|card| card["name"].as_str().unwrap())
        .collect();
    assert_eq!(left, ["s0", "s4", "s3"], "by last activity");
}

#[test]
fn what_is_derived_can_be_rebuilt_from_the_sessions() {
    let tl = Tl::new();
    append_exchanges(&tl, "one", 3);
    let before = list_sessions(&tl);
    tl.ok(&["doctor", "--rebuild"]);
    assert_eq!(list_sessions(&tl), before);
}

#[test]
fn a_session_is_auto_saved_on_user_messages_and_model_responses() {
    let tl = Tl::new();
    let provider = start_provider([Reply::text("It holds tokens.")]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("What is a token bucket?");
    chat.kill();
    assert_eq!(
        tl.texts("last"),
        ["What is a token bucket?", "It holds tokens."]
    );
}

#[test]
fn sessions_are_deleted_and_known_to_be_gone() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "one", 1);
    tl.ok(&["delete", &id]);
    assert_eq!(tl.run(&["show", &id]).code(), Some(3));
    assert_eq!(tl.run(&["-p", "hello", "--resume", &id]).code(), Some(3));
    assert_eq!(tl.run(&["delete", "nothing-of-the-sort"]).code(), Some(3));
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let tl = Tl::new();
    append_exchanges(&tl, "one", 1);
    let folder = tl.work().join("out");
    std::fs::create_dir(&folder).unwrap();
    tl.ok(&["export", "one", "-o", "out/one.md"]);
    let names = || {
        let entries = std::fs::read_dir(&folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(), ["one.md"], "nothing temporary is left");
}
