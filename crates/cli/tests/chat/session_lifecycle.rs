//! The whole lifecycle of sessions in the chat, from the first start on.

use crate::assert_screen;
use crate::harness::Tl;

#[test]
fn the_first_start_says_what_can_be_done_and_saves_what_is_said() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("Hello");
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("TODO: write the integration tests");
    chat.send_line("what tasks are open?");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("first_start", chat.scrollback());
}

#[test]
fn kill_minus_nine_loses_nothing_and_the_next_start_says_so() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("TODO: write the integration tests");
    chat.kill();

    let mut chat = tl.chat(&[]);
    assert_screen!("killed_and_recovered", chat.screen());
    chat.send_line("what tasks are open?");
    assert_eq!(chat.exit(), Some(0));
    assert!(
        chat.scrollback()
            .contains("- TODO: write the integration tests"),
        "{}",
        chat.scrollback()
    );

    let again = tl.chat(&[]);
    assert!(!again.scrollback().contains("Recovered"), "it ended well");
}

#[test]
fn compacting_twice_in_a_chain_goes_on_in_new_sessions() {
    let tl = Tl::new();
    let mut chat = tl.chat(&["--policy", "chain"]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("TODO: write the integration tests");
    chat.send_line("compact");
    chat.send_line("We decided on a token bucket.");
    chat.send_line("compact");
    chat.send_line("what tasks are open?");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("chain", chat.scrollback());

    let sessions = tl.json(&["sessions", "--all"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3);
}

#[test]
fn compacting_twice_in_place_stays_in_the_session_and_can_be_undone() {
    let tl = Tl::new();
    let mut chat = tl.chat(&["--with", "keep=1 messages"]);
    for message in [
        "We decided to use Redis for the session cache, because it is already running.",
        "TODO: write the integration tests for the limiter before the release.",
        "The port is 8080 in staging and 8443 in production, and both are open.",
        "Nobody has looked at the migration of the old sessions since last week.",
    ] {
        chat.send_line(message);
    }
    chat.send_line("/compact");
    chat.send_line("The limiter lives in src/limiter.rs and is tested by hand so far.");
    chat.send_line("compact");
    chat.send_line("/compact --undo");
    assert_screen!("in_place", chat.scrollback());
    assert_eq!(
        tl.json(&["sessions", "--all"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn an_older_session_is_resumed_by_its_number() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("/new billing");
    chat.send_line("Invoices are sent on the first of the month.");
    chat.send_line("/sessions");
    chat.send_line("resume 2");
    chat.send_line("resume 9");
    chat.send_line("resume 2");
    chat.send_line("resume tomorrow");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("resume_by_number", chat.scrollback());
}

#[test]
fn a_fork_is_tried_and_merged_back() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("/fork");
    chat.send_line("What if Postgres did it?");
    chat.send_line("/tree");
    chat.send_line("/merge");
    chat.send_line("/history 3");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("fork_and_merge", chat.scrollback());
}

#[test]
fn a_fork_of_a_session_that_moved_on_is_merged_as_one_says() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("/rename cache");
    chat.send_line("/fork --at 2");
    chat.send_line("What if Postgres did it?");
    tl.ok(&["append", "cache", "Meanwhile, here."]);
    chat.send_line("/merge");
    chat.send_line("/merge --summary 'Postgres is too slow for it'");
    chat.send_line("/history 2");
    assert_screen!("merge_moved", chat.scrollback());
}

#[test]
fn clearing_starts_anew_and_leaves_everything_readable() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("/clear");
    chat.send_line("/context");
    chat.send_line("/show --all");
    chat.send_line("what was decided?");
    assert_screen!("cleared", chat.scrollback());
}
