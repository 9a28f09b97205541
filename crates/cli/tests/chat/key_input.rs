//! Keyboard input: lines, multi-line input, completion, and ways to exit.

use crate::assert_screen;
use crate::harness::Tl;
use crate::pty::{ALT_ENTER, CTRL_C, CTRL_D, CTRL_U, TAB, UP};

#[test]
fn a_message_may_have_several_lines() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_keys("first\\\rsecond");
    chat.enter();
    chat.wait_for_prompt();
    chat.send_keys("third");
    chat.send_keys(ALT_ENTER);
    chat.send_keys("fourth");
    chat.enter();
    chat.wait_for_prompt();
    chat.send_keys("```rust\rfn main() {}\r```");
    chat.enter();
    chat.wait_for_prompt();
    assert_screen!("several_lines", chat.scrollback());
    let texts = tl.texts("last");
    assert!(texts.contains(&"first\nsecond".to_owned()), "{texts:?}");
    assert!(texts.contains(&"third\nfourth".to_owned()), "{texts:?}");
    let code = "```rust\nfn main() {}\n```".to_owned();
    assert!(texts.contains(&code), "{texts:?}");
}

#[test]
fn commands_sessions_and_tags_are_completed_by_tab() {
    let tl = Tl::new();
    tl.session("billing", &["Invoices are sent on the first."]);
    tl.ok(&["tag", "billing", "urgent"]);
    let mut chat = tl.chat(&["--new"]);
    chat.send_keys(&format!("/tag ur{TAB}"));
    chat.wait_for("You: /tag urgent");
    chat.send_keys(&format!("{CTRL_U}/resume bi{TAB}"));
    chat.wait_for("You: /resume billing");
    chat.send_keys(&format!("{CTRL_U}/re{TAB}{TAB}"));
    chat.wait_for("/rewind");
    chat.wait_for_end("You: /re");
    assert_screen!("completion", chat.screen());
}

#[test]
fn a_command_hints_at_what_it_takes() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_keys("/export");
    chat.wait_for("/export [-o FILE]");
}

#[test]
fn lines_are_remembered_from_chat_to_chat() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("Something long that nobody types twice");
    chat.exit();
    let mut chat = tl.chat(&["--new"]);
    chat.send_keys(&format!("{UP}{UP}"));
    chat.wait_for("You: Something long that nobody types twice");
}

#[test]
fn ctrl_c_at_the_prompt_leaves_when_it_comes_twice() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_keys("half a tho");
    chat.wait_for("half a tho");
    chat.press(CTRL_C);
    chat.wait_for_prompt();
    chat.send_line("Something else");
    chat.press(CTRL_C);
    chat.wait_for_prompt();
    chat.press(CTRL_C);
    assert_eq!(chat.exit_code(), Some(0));
    assert_screen!("ctrl_c_twice", chat.scrollback());
}

#[test]
fn ctrl_d_leaves() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.send_line("Something worth keeping");
    chat.press(CTRL_D);
    assert_eq!(chat.exit_code(), Some(0));
    assert_screen!("ctrl_d", chat.scrollback());
}

#[test]
fn who_said_nothing_is_told_nothing_at_the_end() {
    let tl = Tl::new();
    let mut chat = tl.chat(&[]);
    chat.press(CTRL_D);
    assert_eq!(chat.exit_code(), Some(0));
    assert_screen!("nothing_said", chat.scrollback());
    assert_eq!(
        tl.json(&["sessions", "--all"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn no_color_means_no_color() {
    let tl = Tl::new();
    let mut chat = tl.terminal(&[]).env("NO_COLOR", "1").start_ready();
    chat.send_line("Hello");
    chat.send_keys("/export");
    chat.wait_for("[-o FILE]");
    chat.send_keys(CTRL_U);
    chat.exit();
    let raw = chat.raw();
    let painted = raw.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';');
        end.is_some_and(|end| rest[end..].starts_with('m') && !matches!(&rest[..end], "" | "0"))
    });
    assert!(!painted, "{raw:?}");
}
