//! What people do again and again.

use serde_json::{Value, json};

use crate::harness::{CommandOutput, Tl, run_to_end};

/// A chat in which these lines are typed, and which is left.
#[track_caller]
pub(crate) fn run_chat(tl: &Tl, args: &[&str], lines: &[&str]) -> String {
    let mut chat = tl.chat(args);
    for line in lines {
        chat.send_line(line);
    }
    assert_eq!(chat.exit(), Some(0), "{}", chat.scrollback());
    chat.scrollback()
}

/// A command that counts tokens roughly.
pub(crate) fn run_rough(tl: &Tl, args: &[&str]) -> CommandOutput {
    let mut command = tl.command(args);
    command.env("TL_ENCODING", "rough");
    run_to_end(command, args, b"")
}

/// The same, with the result as JSON.
#[track_caller]
pub(crate) fn run_rough_json(tl: &Tl, args: &[&str]) -> Value {
    let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&run_rough(tl, &args).ok()).unwrap()
}

/// A session with so many exchanges; gives its id.
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

/// The sessions there are, as cards.
pub(crate) fn list_sessions(tl: &Tl) -> Vec<Value> {
    tl.json(&["sessions", "--all"])["sessions"]
        .as_array()
        .unwrap()
        .clone()
}

/// The card of a session.
pub(crate) fn session_info(tl: &Tl, session: &str) -> Value {
    tl.json(&["show", session])["session"].clone()
}

/// All entries of a session.
pub(crate) fn entries(tl: &Tl, session: &str) -> Vec<Value> {
    let shown = tl.json(&["show", session, "--all"]);
    shown["entries"].as_array().unwrap().clone()
}

/// A section of the request that would be sent now.
pub(crate) fn section(request: &Value, name: &str) -> Value {
    let sections = request["sections"].as_array().unwrap().iter();
    let mut named = sections.filter(|section| section["name"] == name);
    named.next().unwrap().clone()
}
