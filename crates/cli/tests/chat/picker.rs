//! The session picker.

use crate::assert_screen;
use crate::harness::Tl;
use crate::pty::{DOWN, ENTER, ESCAPE};

fn three_sessions() -> Tl {
    let tl = Tl::new();
    tl.session(
        "billing",
        &["Invoices are sent on the first.", "Who sends them?"],
    );
    tl.session("cache", &["We decided to use Redis for the session cache."]);
    tl.session("limiter", &["TODO: test the burst of the limiter"]);
    tl.ok(&["tag", "limiter", "urgent"]);
    tl
}

#[test]
fn a_session_is_found_by_a_few_letters_and_opened() {
    let tl = three_sessions();
    let mut chat = tl.terminal(&["--resume"]).start();
    chat.wait_for("3 · Enter opens");
    assert_screen!("picker", chat.screen());
    chat.send_keys("invc");
    chat.wait_for("1 · Enter opens");
    assert_screen!("picker_narrowed", chat.screen());
    chat.send_keys(ENTER);
    chat.wait_for_prompt();
    assert_screen!("picker_opened", chat.screen());
}

#[test]
fn a_list_that_nothing_fits_says_so_and_escape_leaves() {
    let tl = three_sessions();
    let mut chat = tl.terminal(&["resume"]).start();
    chat.wait_for("3 · Enter opens");
    chat.send_keys("zzz");
    chat.wait_for("no matches");
    chat.send_keys(ENTER);
    chat.send_keys(ESCAPE);
    assert_eq!(chat.exit_code(), Some(0));
    assert_eq!(chat.screen(), "");
}

#[test]
fn resume_in_the_chat_opens_the_list_too() {
    let tl = three_sessions();
    let mut chat = tl.chat(&[]);
    chat.type_line("/resume");
    chat.wait_for("3 · Enter opens");
    chat.send_keys(DOWN);
    chat.wait_for("▌ cache");
    chat.send_keys(ENTER);
    chat.wait_for_prompt();
    assert_screen!("picker_in_chat", chat.scrollback());
}
