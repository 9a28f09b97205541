//! What can be typed besides talking.

use crate::assert_screen;
use crate::harness::Tl;

#[test]
fn help_fits_the_screen() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("/help");
    assert_screen!("help", chat.scrollback());
}

#[test]
fn a_session_is_named_tagged_and_told_facts() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("Let us look at src/limiter.rs, where the limiter lives.");
    chat.say("/rename rate limiter");
    chat.say("/tag urgent backend");
    chat.say("/pin The port is 8080, not 80");
    chat.say("/decide Use a token bucket");
    chat.say("/facts");
    chat.say("/tasks");
    chat.say("TODO: test the burst");
    chat.say("/tasks");
    chat.say("/unpin 1");
    chat.say("/unpin The port is 8080, not 80");
    chat.say("/pin");
    assert_screen!("noting", chat.scrollback());
}

#[test]
fn a_session_is_looked_at() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("Let us look at src/limiter.rs, where the limiter lives.");
    chat.say("/history 1");
    chat.say("/tree");
    chat.say("/workspace");
    chat.say("/stats");
    chat.say("/context");
    chat.say("/export -o session.md");
    chat.say("/doctor");
    assert_screen!("looking", chat.scrollback());
    assert!(tl.work().join("session.md").exists());
}

#[test]
fn the_model_and_the_agent_are_told() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("/model");
    chat.say("/agent");
    chat.say("/model nobody/nothing");
    chat.say("/model anthropic");
    chat.say("/model offline");
    chat.say("/agent nobody");
    assert_screen!("who_answers", chat.scrollback());
}

#[test]
fn what_was_said_is_taken_back_and_put_away() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("One thing.");
    chat.say("Another thing.");
    chat.say("/rewind 2");
    chat.say("/rewind");
    chat.say("/retry");
    chat.say("/archive");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("taking_back", chat.scrollback());
}

#[test]
fn a_command_that_does_not_exist_is_told_with_one_that_does() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("/serach redis");
    chat.say("/frobnicate");
    chat.say("/usr/bin/env is missing");
    chat.say("/tag 'open quote");
    chat.say("/compact --everything");
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
        chat.say(line);
    }
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("before_anything", chat.scrollback());
}

#[test]
fn what_is_wrong_with_a_command_is_told_with_how_to_write_it() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.say("One thing.");
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
        chat.say(line);
    }
    assert_screen!("misused", chat.scrollback());
}

#[test]
fn what_is_pasted_in_several_lines_is_one_message() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.keys("\x1b[200~first line\nsecond line\n\x1b[201~");
    chat.wait_for("second line");
    chat.enter();
    chat.ready();
    assert_eq!(tl.texts("last")[0], "first line\nsecond line");
}
