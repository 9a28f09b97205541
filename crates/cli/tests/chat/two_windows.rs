//! Two chats on one session: both see each other's messages, and no message is orphaned.

use std::time::Duration;

use crate::assert_screen;
use crate::harness::Tl;
use crate::pty::{CTRL_C, Pty};

/// Opens two chats on one session. The first has sent a message that the second has not
/// seen, and the second has just sent one of its own.
fn open_two_windows(tl: &Tl) -> (Pty, Pty) {
    let mut first = tl.chat(&[]);
    first.send_line("We decided to use Redis for the session cache.");
    first.send_line("/rename cache");
    let mut second = tl.chat(&[]);
    first.send_line("TODO: measure it under load");
    second.send_line("TODO: measure its memory");
    (first, second)
}

/// Returns the texts of the user's messages, in order.
fn user_texts(tl: &Tl, session: &str) -> Vec<String> {
    let shown = tl.json(&["show", session, "--all"]);
    let entries = shown["entries"].as_array().unwrap().iter();
    let users = entries.filter(|entry| entry["role"] == "user");
    users
        .map(|entry| entry["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_second_window_sees_what_the_first_said_and_may_say_it_here() {
    let tl = Tl::new();
    let (mut first, mut second) = open_two_windows(&tl);
    assert_screen!("second_window", second.scrollback());
    second.send_line("h");
    second.exit();
    first.exit();
    assert_screen!("second_window_here", second.scrollback());
    assert_eq!(
        user_texts(&tl, "cache"),
        [
            "We decided to use Redis for the session cache.",
            "TODO: measure it under load",
            "TODO: measure its memory",
        ]
    );
    assert_eq!(
        tl.json(&["sessions", "--all"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn the_second_window_may_go_on_in_a_fork() {
    let tl = Tl::new();
    let (mut first, mut second) = open_two_windows(&tl);
    second.send_line("f");
    second.send_line("/tree");
    second.exit();
    first.send_line("Still here");
    first.exit();
    assert_screen!("second_window_fork", second.scrollback());
    assert_eq!(
        user_texts(&tl, "cache"),
        [
            "We decided to use Redis for the session cache.",
            "TODO: measure it under load",
            "Still here",
        ]
    );
    let sessions = tl.json(&["sessions", "--all"]);
    let sessions = sessions["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    let fork = sessions.iter().find(|session| session["name"] != "cache");
    let fork = fork.unwrap()["id"].as_str().unwrap();
    assert_eq!(
        user_texts(&tl, fork),
        [
            "We decided to use Redis for the session cache.",
            "TODO: measure its memory",
        ]
    );
}

#[test]
fn the_second_window_may_think_again() {
    let tl = Tl::new();
    let (mut first, mut second) = open_two_windows(&tl);
    second.send_line("n");
    assert_screen!("second_window_not", second.scrollback());
    second.send_line("TODO: measure something else");
    second.exit();
    first.exit();
    assert_eq!(
        user_texts(&tl, "cache"),
        [
            "We decided to use Redis for the session cache.",
            "TODO: measure it under load",
            "TODO: measure something else",
        ]
    );
}

#[test]
fn a_question_says_whose_answer_it_waits_for_and_need_not_wait() {
    let tl = Tl::new();
    let id = tl.session("talk", &["Hello"]);
    let mut window = tl.chat(&["--resume", &id]);
    tl.hold_lease_elsewhere(&format!("turn in {id}"), Duration::from_secs(3_600));
    window.type_line("And now?");
    window.wait_for("Waiting for tl serve, process 12 on elsewhere");
    window.send_keys(CTRL_C);
    window.wait_for("Nothing was sent.");
    window.exit();
    assert_eq!(user_texts(&tl, &id), ["Hello"]);
}
