//! Agents in the chat: where their files are found, and the confirmation when they change.

use std::path::PathBuf;

use crate::assert_screen;
use crate::harness::Tl;

const SALLY: &str =
    "---\nname: Simple Sally\ndescription: Answers simply.\n---\nYou answer simply.\n";

/// Writes an agent's file.
fn write_agent(tl: &Tl, path: &str, text: &str) -> PathBuf {
    let path = tl.work().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn agent_of(tl: &Tl, session: &str) -> String {
    let card = &tl.json(&["show", session])["session"];
    card["agent"]["name"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn an_agent_of_the_project_is_found_by_name_and_taken_up_again() {
    let tl = Tl::new();
    write_agent(&tl, ".throughline/agents/sally.md", SALLY);
    let mut chat = tl.chat(&["--agent", "sally"]);
    chat.send_line("Hello");
    chat.send_line("/agent");
    chat.send_line("/context");
    chat.exit();
    let again = tl.chat(&[]);
    assert_screen!(
        "agent_by_name",
        format!("{}\n\n{}", chat.scrollback(), again.scrollback())
    );
    assert_eq!(agent_of(&tl, "last"), "Simple Sally");
}

#[test]
fn an_agent_is_found_by_path() {
    let tl = Tl::new();
    write_agent(&tl, "mine/terse.md", "You say little.\n");
    let mut chat = tl.chat(&["--agent", "mine/terse.md"]);
    chat.send_line("Hello");
    chat.exit();
    assert!(
        chat.scrollback().contains("\nterse:\n"),
        "{}",
        chat.scrollback()
    );
    let card = &tl.json(&["show", "last"])["session"];
    let path = tl.work().join("mine/terse.md");
    assert_eq!(card["agent"]["path"], path.to_str().unwrap());
}

#[test]
fn resuming_with_another_agent_asks_first() {
    let tl = Tl::new();
    write_agent(&tl, ".throughline/agents/sally.md", SALLY);
    write_agent(&tl, ".throughline/agents/terse.md", "You say little.\n");
    let mut chat = tl.chat(&["--agent", "sally"]);
    chat.send_line("Hello");
    chat.exit();

    let mut no = tl.chat(&["--agent", "terse"]);
    no.type_line("n");
    assert_eq!(no.exit_code(), Some(0));
    assert_screen!("other_agent_no", no.scrollback());
    assert_eq!(agent_of(&tl, "last"), "Simple Sally");

    let mut yes = tl.chat(&["--agent", "terse"]);
    yes.send_line("y");
    yes.send_line("Hello again");
    yes.exit();
    assert_screen!("other_agent_yes", yes.scrollback());
    assert_eq!(agent_of(&tl, "last"), "terse");
}

#[test]
fn resuming_with_another_agent_is_refused_where_nobody_can_be_asked() {
    let tl = Tl::new();
    write_agent(&tl, ".throughline/agents/sally.md", SALLY);
    write_agent(&tl, ".throughline/agents/terse.md", "You say little.\n");
    tl.ok(&["-p", "Hello", "--agent", "sally"]);
    let said = tl.run(&["-p", "Hello", "--agent", "terse"]);
    assert_eq!(said.code(), Some(5), "{said}");
    assert!(
        said.stderr().contains("use the same --agent, or --new"),
        "{said}"
    );
    assert_eq!(tl.texts("last").len(), 2, "nothing was said");
}

#[test]
fn going_to_a_session_of_another_agent_in_the_chat_asks_first() {
    let tl = Tl::new();
    write_agent(&tl, ".throughline/agents/sally.md", SALLY);
    write_agent(&tl, ".throughline/agents/terse.md", "You say little.\n");
    let mut chat = tl.chat(&["--agent", "sally"]);
    chat.send_line("Hello");
    chat.send_line("/rename first");
    chat.send_line("/new second");
    chat.send_line("/agent terse");
    chat.send_line("Hello");
    chat.send_line("resume first_");
    chat.send_line("/resume first");
    chat.send_line("n");
    chat.send_line("/resume first");
    chat.send_line("y");
    assert_screen!("other_agent_in_chat", chat.scrollback());
}

#[test]
fn an_agent_whose_file_is_gone_is_reported() {
    let tl = Tl::new();
    let path = write_agent(&tl, ".throughline/agents/sally.md", SALLY);
    let mut chat = tl.chat(&["--agent", "sally"]);
    chat.send_line("Hello");
    chat.exit();
    std::fs::remove_file(path).unwrap();
    let chat = tl.chat(&[]);
    assert_screen!("agent_gone", chat.scrollback());
}

#[test]
fn an_agent_may_choose_how_requests_are_made() {
    let tl = Tl::new();
    write_agent(
        &tl,
        ".throughline/agents/sally.md",
        "---\nname: Sally\npolicy: chain\nmodel: offline\n---\nYou answer simply.\n",
    );
    let mut chat = tl.chat(&["--agent", "sally"]);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("compact");
    let screen = chat.scrollback();
    assert!(
        screen.contains("🔄 Starting new session with summary..."),
        "{screen}"
    );
    assert!(screen.contains("\nSally:\n"), "{screen}");
}

#[test]
fn an_agent_of_a_project_may_not_choose_where_keys_are_sent() {
    let tl = Tl::new();
    write_agent(
        &tl,
        ".throughline/agents/sally.md",
        "---\nname: Sally\nmodel: gpt-5\nbase_url: https://example.org/v1\n---\nHello.\n",
    );
    let mut chat = tl
        .terminal(&["--agent", "sally"])
        .env("OPENAI_API_KEY", "sk-secret")
        .start();
    assert_eq!(chat.exit_code(), Some(5));
    assert_screen!("agent_elsewhere", chat.scrollback());
}
