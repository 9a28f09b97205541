//! Files as they are found: with marks and line ends of other systems, with bytes that are no
//! text, torn, and empty. What is sound in them is told all the same.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use throughline_formats::{Agent, read_source};
use throughline_model::Incoming;

use crate::told::{all, can_be_stored, fixture, text, written};

/// Formats of lines; a file of each.
const LINES: [(Agent, &str); 6] = [
    (
        Agent::ClaudeCode,
        "claude-code/11111111-1111-4111-8111-111111111111.jsonl",
    ),
    (
        Agent::Codex,
        "codex/rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl",
    ),
    (Agent::Codex, "codex/session_index.jsonl"),
    (
        Agent::Gemini,
        "gemini/chats/session-2026-01-02T10-00-main1.jsonl",
    ),
    (
        Agent::Pi,
        "pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl",
    ),
    (Agent::Goose, "goose/20250101_120000.jsonl"),
];

/// Formats of documents; one of each, and a word that was said in it.
const DOCUMENTS: [(Agent, &str, &str); 10] = [
    (Agent::Gemini, "gemini/chats/session-legacy.json", "Hello"),
    (
        Agent::OpenCode,
        "opencode/storage/session/p1/ses_1.json",
        "Old layout",
    ),
    (Agent::OpenCode, "opencode/export.json", "Undone"),
    (Agent::Conversations, "items.json", "weather?"),
    (Agent::Plain, "messages.json", "Be kind"),
    (
        Agent::AiArmy,
        "aiarmy/session-abc12345/full.json",
        "message 7",
    ),
    (Agent::ChatLoop, "chat_loop.md", "continue!"),
    (Agent::Bot, "sessions.json", "Hi!"),
    (
        Agent::AgentCli,
        "agent-cli/2026-01-04-14-32-15-001-abcd.json",
        "Help me",
    ),
    (
        Agent::Dagent,
        "dagent/session_pm-feature-auth.json",
        "feature\",\"agentType\":\"p",
    ),
];

/// The fixtures, to be damaged.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        fn copy(from: &Path, to: &Path) {
            fs::create_dir_all(to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                let to = to.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    copy(&entry.path(), &to);
                } else {
                    fs::copy(entry.path(), to).unwrap();
                }
            }
        }
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture(""), folder.path());
        Self(folder)
    }

    /// A file with what `change` makes of it.
    fn changed(&self, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
        let path = self.0.path().join(name);
        let bytes = fs::read(fixture(name)).unwrap();
        fs::write(&path, change(bytes)).unwrap();
        path
    }
}

/// What is told but for what is wrong, which is told with its place.
fn sound(told: &str) -> Vec<&str> {
    let lines = told.lines();
    lines
        .filter(|line| !line.trim_start().starts_with("damaged"))
        .collect()
}

fn marked_with_crlf(bytes: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(bytes).unwrap();
    format!("\u{feff}{}", text.replace('\n', "\r\n")).into_bytes()
}

#[test]
fn a_mark_and_other_line_ends_change_nothing() {
    let copy = Copy::new();
    let documents = DOCUMENTS.map(|(agent, name, _)| (agent, name));
    let others = [
        (Agent::ChatGpt, "chatgpt.json"),
        (Agent::Aider, "aider.chat.history.md"),
    ];
    for (agent, name) in LINES.into_iter().chain(documents).chain(others) {
        let path = copy.changed(name, |bytes| bytes);
        let expected = text(agent, &path);
        let path = copy.changed(name, marked_with_crlf);
        assert_eq!(sound(&text(agent, &path)), sound(&expected), "{name}");
    }
}

#[test]
fn a_line_that_is_no_text_is_told_and_the_others_are_read() {
    let copy = Copy::new();
    for (agent, name) in LINES {
        let expected = text(agent, &fixture(name));
        let path = copy.changed(name, |bytes| {
            let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let first = lines.next().unwrap();
            let mut all = [first, b"{\"type\":\"user\",\"id\":\"x\xFF\"}\n"].concat();
            all.extend(lines.flatten());
            all
        });
        let told = all(agent, &path);
        let wrong = |incoming: &&Incoming| matches!(incoming, Incoming::Passed(p) if p.damaged && p.place == 2);
        assert_eq!(told.iter().filter(wrong).count(), 1, "{name}");
        let count = |text: &str| sound(text).len();
        assert_eq!(count(&written(&told)), count(&expected), "{name}");
    }
}

#[test]
fn a_document_with_bytes_that_are_no_text_is_read_all_the_same() {
    let copy = Copy::new();
    for (agent, name, word) in DOCUMENTS {
        let expected = text(agent, &fixture(name));
        let path = copy.changed(name, |bytes| {
            let at = bytes
                .windows(word.len())
                .position(|part| part == word.as_bytes());
            let mut bytes = bytes;
            bytes.insert(at.unwrap() + word.len(), 0xFF);
            bytes
        });
        let told = text(agent, &path);
        assert!(
            told.contains("is no text, and is replaced"),
            "{name}: {told}"
        );
        assert_eq!(sound(&told).len(), sound(&expected).len(), "{name}: {told}");
        fs::copy(fixture(name), path).unwrap();
    }
}

#[test]
fn an_empty_file_has_nothing_in_it_and_is_no_failure() {
    let copy = Copy::new();
    let documents = DOCUMENTS.map(|(agent, name, _)| (agent, name));
    let others = [
        (Agent::ChatGpt, "chatgpt.json"),
        (Agent::Aider, "aider.chat.history.md"),
    ];
    for (agent, name) in LINES.into_iter().chain(documents).chain(others) {
        let path = copy.changed(name, |_| Vec::new());
        let told = all(agent, &path);
        let entry = |incoming: &Incoming| matches!(incoming, Incoming::Entry(_));
        assert!(!told.iter().any(entry), "{name}");
    }
}

#[test]
fn a_document_that_breaks_off_is_refused_by_name() {
    let copy = Copy::new();
    for (agent, name, _) in DOCUMENTS {
        if agent == Agent::ChatLoop {
            // A transcript is written as it goes: a part of one is one.
            continue;
        }
        let path = copy.changed(name, |bytes| bytes[..bytes.len() * 2 / 3].to_vec());
        let refused = read_source(agent, &path, None, &mut |_| true).unwrap_err();
        let refused = refused.to_string();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(refused.contains(&file), "{refused}");
        assert!(refused.contains(agent.name()), "{refused}");
        fs::copy(fixture(name), path).unwrap();
    }
}

/// Puts a value in front of every array that has objects with a `type`, wherever it is.
fn insert_block(value: &mut Value, block: &Value) -> usize {
    match value {
        Value::Array(list) => {
            let mut inserted = list
                .iter_mut()
                .map(|inner| insert_block(inner, block))
                .sum();
            if list.iter().any(|element| element["type"].is_string()) {
                list.insert(0, block.clone());
                inserted += 1;
            }
            inserted
        }
        Value::Object(members) => {
            let inner = members.values_mut();
            inner.map(|inner| insert_block(inner, block)).sum()
        }
        _ => 0,
    }
}

/// Blocks that are not objects with a `type`, or only pretend to be ours.
#[test]
fn a_block_of_any_shape_can_be_stored() {
    let blocks = [
        json!([""]),
        json!(["text"]),
        json!([["text"], "a"]),
        json!({}),
        json!(7),
        json!(null),
        json!({"type": 7}),
        json!({"type": ["text"]}),
        json!({"type": ""}),
        json!({"type": "text"}),
        json!({"type": "thinking"}),
        json!({"type": "tool_call", "id": 7}),
        json!({"type": "tool_result"}),
        json!({"type": "attachment", "blob": "x"}),
        json!({"type": "foreign"}),
    ];
    let copy = Copy::new();
    let documents = DOCUMENTS.map(|(agent, name, _)| (agent, name));
    let chatgpt = [(Agent::ChatGpt, "chatgpt.json")];
    let mut changed = 0;
    for (agent, name) in LINES.into_iter().chain(documents).chain(chatgpt) {
        for block in &blocks {
            let path = copy.changed(name, |bytes| {
                let mut insert = |text: &[u8]| {
                    let mut value = serde_json::from_slice(text).ok()?;
                    changed += insert_block(&mut value, block);
                    Some(value.to_string().into_bytes())
                };
                let whole = insert(&bytes);
                whole.unwrap_or_else(|| {
                    let lines = bytes.split(|byte| *byte == b'\n');
                    let lines = lines.map(|line| insert(line).unwrap_or_else(|| line.to_vec()));
                    lines.collect::<Vec<_>>().join(&b'\n')
                })
            });
            // A document that is an array of records may be refused because of it.
            let mut told = Vec::new();
            let _ = read_source(agent, &path, None, &mut |incoming| {
                told.push(incoming);
                true
            });
            can_be_stored(&told);
        }
        copy.changed(name, |bytes| bytes);
    }
    assert!(changed > 10 * blocks.len(), "{changed} blocks inserted");
}
