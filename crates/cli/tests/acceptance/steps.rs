//! Steps that several acceptance tests share.

use serde_json::{Value, json};

use crate::harness::{CommandOutput, Tl, run_to_end};

/// Runs a chat, types these lines and exits; returns what was on the screen.
#[track_caller]
pub(crate) fn run_chat(tl: &Tl, args: &[&str], lines: &[&str]) -> String {
    let mut chat = tl.chat(args);
    for line in lines {
        chat.send_line(line);
    }
    assert_eq!(chat.exit(), Some(0), "{}", chat.scrollback());
    chat.scrollback()
}

/// Runs a command with approximate token counting.
pub(crate) fn run_rough(tl: &Tl, args: &[&str]) -> CommandOutput {
    let mut command = tl.command(args);
    command.env("TL_ENCODING", "rough");
    run_to_end(command, args, b"")
}

/// The same, with the output parsed as JSON.
#[track_caller]
pub(crate) fn run_rough_json(tl: &Tl, args: &[&str]) -> Value {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&run_rough(tl, &args).ok()).unwrap()
}

/// Creates a session with this many exchanges; returns its id.
pub(crate) fn append_exchanges(tl: &Tl, name: &str, exchanges: usize) -> String {
    let id = tl.ok(&["new", "--name", name]).trim().to_owned();
    let lines: String = (1..=exchanges)
        .flat_map(|n| {
            let question = format!("Step {n}: please look at src/part_{n}.rs and tell me about it");
            let answer = format!(
                "It parses the header of part {n}. {} Nothing else is in it.",
                "It reads a line, looks at its first word, and goes on with the next. ".repeat(8)
            );
            [("user", question), ("assistant", answer)]
        })
        .map(|(role, content)| format!("{}\n", json!({"role": role, "content": content})))
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    id
}

/// Lists the info of all sessions.
pub(crate) fn list_sessions(tl: &Tl) -> Vec<Value> {
    tl.json(&["sessions", "--all"])["sessions"]
        .as_array()
        .unwrap()
        .clone()
}

/// Returns the info of a session.
pub(crate) fn session_info(tl: &Tl, session: &str) -> Value {
    tl.json(&["show", session])["session"].clone()
}

/// Returns all entries of a session.
pub(crate) fn entries(tl: &Tl, session: &str) -> Vec<Value> {
    let shown = tl.json(&["show", session, "--all"]);
    shown["entries"].as_array().unwrap().clone()
}

/// Returns a section of the request that would be sent now.
pub(crate) fn section(request: &Value, name: &str) -> Value {
    let sections = request["sections"].as_array().unwrap().iter();
    let mut named = sections.filter(|section| section["name"] == name);
    named.next().unwrap().clone()
}
