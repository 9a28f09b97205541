//! Acceptance tests for the bot: one permanent session per user, and two of its messages in
//! a request.

use crate::harness::Tl;
use crate::provider::{ANTHROPIC, RequestPurpose, purpose, start_provider};
use crate::steps::{
    append_exchanges, list_sessions, run_chat, run_rough, run_rough_json, section, session_info,
};

#[test]
fn the_first_message_creates_a_session() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    assert_eq!(list_sessions(&tl).len(), 0);
    chat.send_line("Hello");
    assert_eq!(list_sessions(&tl).len(), 1);
}

#[test]
fn messages_are_added_to_the_history_on_each_interaction() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    for (said, kept) in [("One.", 2), ("Two.", 4), ("Three.", 6)] {
        chat.send_line(said);
        assert_eq!(session_info(&tl, "last")["messages"], kept);
    }
}

#[test]
fn the_last_activity_timestamp_is_updated() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("One.");
    let before = session_info(&tl, "last");
    chat.send_line("Two.");
    let after = session_info(&tl, "last");
    assert_eq!(before["created_at"], after["created_at"]);
    assert!(before["last_activity"].as_str() < after["last_activity"].as_str());
}

#[test]
fn the_session_is_persisted_to_disk_after_each_message() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("One.");
    chat.kill();
    assert_eq!(tl.texts("last").len(), 2);
}

#[test]
fn the_session_survives_restarts() {
    let tl = Tl::new();
    run_chat(&tl, &[], &["We decided to use Redis."]);
    let screen = run_chat(&tl, &[], &["what was decided?"]);
    assert!(screen.contains("- We decided to use Redis."), "{screen}");
}

#[test]
fn clear_clears_the_history_and_keeps_the_session() {
    let tl = Tl::new();
    let screen = run_chat(
        &tl,
        &[],
        &["We decided to use Redis.", "/clear", "what was decided?"],
    );
    assert!(screen.contains("Nothing was decided here yet."), "{screen}");
    assert_eq!(list_sessions(&tl).len(), 1);
    let request = run_rough_json(&tl, &["context", "last"]);
    assert!(
        !section(&request, "recent")["text"]
            .to_string()
            .contains("Redis")
    );
}

#[test]
fn the_session_persists_until_it_is_deleted_by_hand() {
    let tl = Tl::new();
    let old = r#"{"role": "user", "content": "long ago", "at": "2001-01-01T00:00:00Z"}"#;
    tl.ok(&["new", "--name", "old"]);
    tl.run_with(&["append", "old", "--json"], old.as_bytes())
        .ok();
    tl.chat(&["--new"]);
    tl.ok(&["purge"]);
    assert_eq!(tl.texts("old"), ["long ago"]);
    tl.ok(&["delete", "old"]);
    assert_eq!(list_sessions(&tl).len(), 0);
}

#[test]
fn a_user_can_refer_to_what_was_said_before() {
    let tl = Tl::new();
    let provider = start_provider([]);
    let mut chat = tl
        .connected_terminal(&[], &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("There is a bug in the parser.");
    chat.send_line("Fix the bug I mentioned.");
    let requests = provider.requests();
    let last = requests
        .iter()
        .rfind(|r| purpose(r) == RequestPurpose::Answer)
        .unwrap();
    assert!(
        last.body
            .to_string()
            .contains("There is a bug in the parser.")
    );
}

#[test]
fn the_current_workspace_is_remembered() {
    let tl = Tl::new();
    std::fs::create_dir(tl.work().join("project")).unwrap();
    let folder = tl.work().join("project");
    let folder = folder.to_str().unwrap();
    run_chat(&tl, &[], &["Hello", &format!("/workspace {folder}")]);
    assert_eq!(session_info(&tl, "last")["workspace"], folder);
    let request = run_rough_json(&tl, &["context", "last"]);
    assert!(
        section(&request, "context")["text"]
            .as_str()
            .unwrap()
            .contains(folder)
    );
}

#[test]
fn each_user_has_an_independent_conversation() {
    let tl = Tl::new();
    tl.ok(&["-p", "Hello, I am Ann", "--owner", "ann"]);
    tl.ok(&["-p", "Hello, I am Bob", "--owner", "bob"]);
    for (owner, said) in [("ann", "Hello, I am Ann"), ("bob", "Hello, I am Bob")] {
        let shown = tl.json(&["show", "last", "--all", "--owner", owner]);
        assert_eq!(shown["entries"][0]["content"], said);
        let listed = tl.json(&["sessions", "--all", "--owner", owner]);
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn the_model_gets_the_last_two_messages_of_500_characters_each() {
    let tl = Tl::new();
    let long = "x".repeat(2_000);
    append_exchanges(&tl, "long", 25);
    tl.ok(&["append", "long", &long, "--role", "assistant"]);
    let provider = start_provider([]);
    let args = ["--resume", "long", "--policy", "bot"];
    let mut chat = tl
        .connected_terminal(&args, &provider, ANTHROPIC)
        .start_ready();
    chat.send_line("change that");
    let requests = provider.requests();
    let asked = requests
        .iter()
        .rfind(|r| purpose(r) == RequestPurpose::Answer)
        .unwrap();
    let whole = asked.body["messages"].to_string();
    assert!(!whole.contains("Step 24:"), "{whole}");
    let longest = whole.split(|c| c != 'x').map(str::len).max().unwrap();
    assert!((400..=500).contains(&longest), "{longest}");
    assert!(whole.contains("change that"));
}

#[test]
fn the_user_can_view_the_full_history() {
    let tl = Tl::new();
    let id = append_exchanges(&tl, "long", 25);
    run_rough(
        &tl,
        &["-p", "and then?", "--resume", "long", "--policy", "bot"],
    )
    .ok();
    assert_eq!(tl.texts(&id).len(), 52);
    assert!(tl.ok(&["show", &id, "--all"]).contains("Step 1:"));
}
