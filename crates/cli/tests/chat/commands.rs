//! Slash commands in the chat.

use crate::assert_screen;
use crate::harness::Tl;

#[test]
fn help_fits_the_screen() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("/help");
    assert_screen!("help", chat.scrollback());
}

#[test]
fn a_session_is_named_tagged_and_told_facts() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("Let us look at src/limiter.rs, where the limiter lives.");
    chat.send_line("/rename rate limiter");
    chat.send_line("/tag urgent backend");
    chat.send_line("/pin The port is 8080, not 80");
    chat.send_line("/decide Use a token bucket");
    chat.send_line("/facts");
    chat.send_line("/tasks");
    chat.send_line("TODO: test the burst");
    chat.send_line("/tasks");
    chat.send_line("/unpin 1");
    chat.send_line("/unpin The port is 8080, not 80");
    chat.send_line("/pin");
    assert_screen!("noting", chat.scrollback());
}

#[test]
fn a_session_is_looked_at() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("Let us look at src/limiter.rs, where the limiter lives.");
    chat.send_line("/history 1");
    chat.send_line("/tree");
    chat.send_line("/workspace");
    chat.send_line("/stats");
    chat.send_line("/context");
    chat.send_line("/export -o session.md");
    chat.send_line("/doctor");
    assert_screen!("looking", chat.scrollback());
    assert!(tl.work().join("session.md").exists());
}

#[test]
fn the_model_and_the_agent_are_shown() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("/model");
    chat.send_line("/agent");
    chat.send_line("/model nobody/nothing");
    chat.send_line("/model anthropic");
    chat.send_line("/model offline");
    chat.send_line("/agent nobody");
    assert_screen!("who_answers", chat.scrollback());
}

#[test]
fn what_was_said_is_taken_back_and_put_away() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("One thing.");
    chat.send_line("Another thing.");
    chat.send_line("/rewind 2");
    chat.send_line("/rewind");
    chat.send_line("/retry");
    chat.send_line("/archive");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("taking_back", chat.scrollback());
}

#[test]
fn an_unknown_command_is_reported_with_a_suggestion() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("/serach redis");
    chat.send_line("/frobnicate");
    chat.send_line("/usr/bin/env is missing");
    chat.send_line("/tag 'open quote");
    chat.send_line("/compact --everything");
    assert_screen!("unknown_command", chat.scrollback());
}

#[test]
fn before_anything_was_said_commands_make_no_trouble() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    for line in [
        "",
        "/compact",
        "/continue",
        "/retry",
        "/history",
        "/fork",
        "/merge",
        "/tree",
        "/sessions",
        "resume 1",
        "/tasks",
    ] {
        chat.send_line(line);
    }
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("before_anything", chat.scrollback());
}

#[test]
fn a_usage_error_is_reported_with_the_right_usage() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("One thing.");
    for line in [
        "/tag",
        "/decide",
        "/merge",
        "/merge something",
        "/export --badly",
        "/workspace /nowhere/at/all",
        "/history x",
        "/fork x",
        "/fork --at 99",
        "/rewind 99",
        "/unpin nothing",
    ] {
        chat.send_line(line);
    }
    assert_screen!("misused", chat.scrollback());
}

#[test]
fn what_is_pasted_in_several_lines_is_one_message() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_keys("\x1b[200~first line\nsecond line\n\x1b[201~");
    chat.wait_for("second line");
    chat.enter();
    chat.wait_for_prompt();
    assert_eq!(tl.texts("last")[0], "first line\nsecond line");
}
