//! Tests damaged files: byte-order marks, foreign line breaks, invalid UTF-8, truncation and
//! empty files. What is valid in them is still read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use throughline_formats::{SourceFormat, read_source};
use throughline_model::IncomingItem;

use crate::rendered_records::{assert_storable, fixture, read_all, read_to_text, render_records};

/// Line-based formats, with a file of each.
const LINES: [(SourceFormat, &str); 6] = [
    (
        SourceFormat::ClaudeCode,
        "claude-code/11111111-1111-4111-8111-111111111111.jsonl",
    ),
    (
        SourceFormat::Codex,
        "codex/rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl",
    ),
    (SourceFormat::Codex, "codex/session_index.jsonl"),
    (
        SourceFormat::Gemini,
        "gemini/chats/session-2026-01-02T10-00-main1.jsonl",
    ),
    (
        SourceFormat::Pi,
        "pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl",
    ),
    (SourceFormat::Goose, "goose/20250101_120000.jsonl"),
];

/// Document formats, with a file of each and a word in it.
const DOCUMENTS: [(SourceFormat, &str, &str); 10] = [
    (
        SourceFormat::Gemini,
        "gemini/chats/session-legacy.json",
        "Hello",
    ),
    (
        SourceFormat::OpenCode,
        "opencode/storage/session/p1/ses_1.json",
        "Old layout",
    ),
    (SourceFormat::OpenCode, "opencode/export.json", "Undone"),
    (SourceFormat::Conversations, "items.json", "weather?"),
    (SourceFormat::Plain, "messages.json", "Be kind"),
    (
        SourceFormat::AiArmy,
        "aiarmy/session-abc12345/full.json",
        "message 7",
    ),
    (SourceFormat::ChatLoop, "chat_loop.md", "continue!"),
    (SourceFormat::Bot, "sessions.json", "Hi!"),
    (
        SourceFormat::AgentCli,
        "agent-cli/2026-01-04-14-32-15-001-abcd.json",
        "Help me",
    ),
    (
        SourceFormat::Dagent,
        "dagent/session_pm-feature-auth.json",
        "feature\",\"agentType\":\"p",
    ),
];

/// A copy of the fixtures that tests can damage.
struct FixtureCopy(tempfile::TempDir);

impl FixtureCopy {
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

    /// Writes a file changed by `change`.
    fn write_changed(&self, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
        let path = self.0.path().join(name);
        let bytes = fs::read(fixture(name)).unwrap();
        fs::write(&path, change(bytes)).unwrap();
        path
    }
}

/// Returns the lines that do not report damage.
fn undamaged_lines(output: &str) -> Vec<&str> {
    let lines = output.lines();
    lines
        .filter(|line| !line.trim_start().starts_with("damaged"))
        .collect()
}

fn with_bom_and_crlf(bytes: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(bytes).unwrap();
    format!("\u{feff}{}", text.replace('\n', "\r\n")).into_bytes()
}

#[test]
fn a_mark_and_other_line_ends_change_nothing() {
    let copy = FixtureCopy::new();
    let documents = DOCUMENTS.map(|(agent, name, _)| (agent, name));
    let others = [
        (SourceFormat::ChatGpt, "chatgpt.json"),
        (SourceFormat::Aider, "aider.chat.history.md"),
    ];
    for (agent, name) in LINES.into_iter().chain(documents).chain(others) {
        let path = copy.write_changed(name, |bytes| bytes);
        let expected = read_to_text(agent, &path);
        let path = copy.write_changed(name, with_bom_and_crlf);
        assert_eq!(
            undamaged_lines(&read_to_text(agent, &path)),
            undamaged_lines(&expected),
            "{name}"
        );
    }
}

#[test]
fn a_line_that_is_no_text_is_reported_and_the_others_are_read() {
    let copy = FixtureCopy::new();
    for (agent, name) in LINES {
        let expected = read_to_text(agent, &fixture(name));
        let path = copy.write_changed(name, |bytes| {
            let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let first = lines.next().unwrap();
            let mut all = [first, b"{\"type\":\"user\",\"id\":\"x\xFF\"}\n"].concat();
            all.extend(lines.flatten());
            all
        });
        let output = read_all(agent, &path);
        let wrong = |incoming: &&IncomingItem| matches!(incoming, IncomingItem::Skipped(p) if p.damaged && p.position == 2);
        assert_eq!(output.iter().filter(wrong).count(), 1, "{name}");
        let count = |text: &str| undamaged_lines(text).len();
        assert_eq!(count(&render_records(&output)), count(&expected), "{name}");
    }
}

#[test]
fn a_document_with_bytes_that_are_no_text_is_read_all_the_same() {
    let copy = FixtureCopy::new();
    for (agent, name, word) in DOCUMENTS {
        let expected = read_to_text(agent, &fixture(name));
        let path = copy.write_changed(name, |bytes| {
            let at = bytes
                .windows(word.len())
                .position(|part| part == word.as_bytes());
            let mut bytes = bytes;
            bytes.insert(at.unwrap() + word.len(), 0xFF);
            bytes
        });
        let output = read_to_text(agent, &path);
        assert!(
            output.contains("is not valid UTF-8 and was replaced"),
            "{name}: {output}"
        );
        assert_eq!(
            undamaged_lines(&output).len(),
            undamaged_lines(&expected).len(),
            "{name}: {output}"
        );
        fs::copy(fixture(name), path).unwrap();
    }
}

#[test]
fn an_empty_file_has_nothing_in_it_and_is_no_failure() {
    let copy = FixtureCopy::new();
    let documents = DOCUMENTS.map(|(agent, name, _)| (agent, name));
    let others = [
        (SourceFormat::ChatGpt, "chatgpt.json"),
        (SourceFormat::Aider, "aider.chat.history.md"),
    ];
    for (agent, name) in LINES.into_iter().chain(documents).chain(others) {
        let path = copy.write_changed(name, |_| Vec::new());
        let output = read_all(agent, &path);
        let entry = |incoming: &IncomingItem| matches!(incoming, IncomingItem::Entry(_));
        assert!(!output.iter().any(entry), "{name}");
    }
}

#[test]
fn a_document_that_breaks_off_is_refused_by_name() {
    let copy = FixtureCopy::new();
    for (agent, name, _) in DOCUMENTS {
        if agent == SourceFormat::ChatLoop {
            // A transcript is written incrementally, so a truncated one is valid.
            continue;
        }
        let path = copy.write_changed(name, |bytes| bytes[..bytes.len() * 2 / 3].to_vec());
        let refused = read_source(agent, &path, None, &mut |_| true).unwrap_err();
        let refused = refused.to_string();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(refused.contains(&file), "{refused}");
        assert!(refused.contains(agent.name()), "{refused}");
        fs::copy(fixture(name), path).unwrap();
    }
}

/// Inserts a value at the start of every array that has objects with a `type`.
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

/// Blocks that are not objects with a `type`, or that imitate ours.
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
    let copy = FixtureCopy::new();
    let documents = DOCUMENTS.map(|(agent, name, _)| (agent, name));
    let chatgpt = [(SourceFormat::ChatGpt, "chatgpt.json")];
    let mut changed = 0;
    for (agent, name) in LINES.into_iter().chain(documents).chain(chatgpt) {
        for block in &blocks {
            let path = copy.write_changed(name, |bytes| {
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
            // A document that is an array of records may be rejected because of it.
            let mut output = Vec::new();
            let _ = read_source(agent, &path, None, &mut |incoming| {
                output.push(incoming);
                true
            });
            assert_storable(&output);
        }
        copy.write_changed(name, |bytes| bytes);
    }
    assert!(changed > 10 * blocks.len(), "{changed} blocks inserted");
}
