//! Tests that exports for other systems read back as the visible session.

#![allow(clippy::unwrap_used, reason = "tests")]

use throughline_formats::{
    Blobs, ClaudeCodeWriter, CodexWriter, ExportMetadata, HtmlWriter, PiWriter, SessionWriter,
    SourceFormat, read_source,
};
use throughline_model::{
    Attachment, Block, Body, Checkpoint, Content, Digest, Entry, EntryId, ImportEvent,
    IncomingItem, Json, Message, NewEntry, Record, Role, Seq, SessionHeader, SessionId,
    StoredEntry, Summary, Timestamp, ToolCall, ToolResult, Usage, fold,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_348_000 + second).unwrap()
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: "read".into(),
        input: Json::parse(r#"{"path":"a.rs"}"#).unwrap(),
    })
}

fn result(id: &str, text: &str) -> Block {
    Block::ToolResult(ToolResult {
        call_id: id.into(),
        content: Content::text(text),
        is_error: false,
    })
}

fn picture() -> (Block, Blobs) {
    let bytes = b"\x89PNG".to_vec();
    let block = Block::Attachment(Attachment {
        blob: Digest::of(&bytes),
        media_type: "image/png".into(),
        bytes: bytes.len() as u64,
        name: None,
    });
    (block, Blobs::from([(Digest::of(&bytes), bytes)]))
}

/// A session with everything that is hard to convert.
fn session() -> (SessionHeader, Vec<Entry>, Blobs) {
    let (picture, blobs) = picture();
    let message = |role, blocks| Body::Message(Message::new(role, Content(blocks)));
    let text = |role, text: &str| Body::Message(Message::text(role, text));
    let mut answer = Message::new(
        Role::Assistant,
        Content(vec![
            Block::Thinking {
                text: "Hm".into(),
                signature: Some("sig".into()),
            },
            Block::Text("I look.".into()),
            call("c1"),
        ]),
    );
    answer.model = Some("claude-x".into());
    answer.usage = Some(Usage {
        input: 110,
        output: 5,
        cache_read: 100,
        cache_write: 0,
    });
    let bodies = vec![
        text(Role::User, "covered by the summary"),
        text(Role::Assistant, "covered too"),
        message(Role::User, vec![Block::Text("see".into()), picture]),
        Body::Message(answer),
        message(Role::Tool, vec![result("c1", "fn main() {}")]),
        text(Role::User, "taken back"),
        Body::Rewound { to: Seq(5) },
        text(Role::System, "a note"),
        message(Role::Assistant, vec![call("never answered")]),
        text(
            Role::User,
            "</script><script>alert(1)</script> & \"quotes\"",
        ),
        Body::Checkpoint(Box::new(Checkpoint {
            covers: Seq(2),
            summary: Summary {
                background: "They began.".into(),
                ..Summary::default()
            },
            by: "m".into(),
            messages: 2,
            oldest: None,
            newest: None,
            usage: None,
        })),
        message(Role::Tool, vec![result("unknown", "orphan")]),
        text(Role::Assistant, "the end"),
    ];
    let birth = SessionHeader::new("s1".parse::<SessionId>().unwrap(), at(0));
    let mut previous = throughline_model::GENESIS;
    let mut entries = Vec::new();
    for (index, body) in bodies.into_iter().enumerate() {
        let number = index as u64 + 1;
        let id = EntryId::derive(&[&number.to_le_bytes()]);
        let new = NewEntry::new(id, at(i64::try_from(number).unwrap()), body);
        let stored = StoredEntry::from_new(&previous, Seq(number), &new, None).unwrap();
        previous = stored.digest;
        entries.push(stored.decode().unwrap());
    }
    (birth, entries, blobs)
}

fn metadata(birth: &SessionHeader, entries: &[Entry]) -> ExportMetadata {
    let Record {
        info,
        state: standing,
    } = fold(birth, entries);
    let mark = standing.checkpoint();
    let summary = mark.and_then(|mark| {
        let entry = entries.iter().find(|entry| entry.seq == mark.seq)?;
        match &entry.body {
            Body::Checkpoint(c) => Some((c.covers, c.summary.clone(), entry.at)),
            _ => None,
        }
    });
    ExportMetadata {
        header: birth.clone(),
        info,
        state: standing,
        summary,
        folder: "/work/app".into(),
    }
}

fn render(
    make: impl FnOnce(&mut Vec<u8>, ExportMetadata) -> Box<dyn SessionWriter + '_>,
) -> String {
    let (birth, entries, blobs) = session();
    let mut out = Vec::new();
    {
        let mut writer = make(&mut out, metadata(&birth, &entries));
        for entry in &entries {
            writer.write_entry(entry, &blobs).unwrap();
        }
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

/// Reads an export; returns its texts, calls and summaries, in order.
fn read_back(agent: SourceFormat, name: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let mut output = Vec::new();
    read_source(agent, &path, None, &mut |incoming| {
        if let IncomingItem::Entry(entry) = &incoming {
            match &entry.event {
                ImportEvent::Body(Body::Message(message)) => {
                    for block in &message.content.0 {
                        output.push(match block {
                            Block::Text(text) => format!("{}: {text}", message.role),
                            Block::ToolCall(call) => format!("call {}", call.name),
                            Block::ToolResult(result) => {
                                format!("result {}", result.content.to_text())
                            }
                            Block::Attachment(file) => format!("file {}", file.media_type),
                            Block::Thinking { text, .. } => format!("thought {text}"),
                            _ => "?".to_owned(),
                        });
                    }
                }
                ImportEvent::Compacted { summary, keeps, .. } => {
                    let kept = if keeps.is_some() { " keeping" } else { "" };
                    output.push(format!("summary {}{kept}", summary.background));
                }
                _ => {}
            }
        }
        if let IncomingItem::Skipped(passed) = &incoming {
            assert!(!passed.damaged, "{passed:?}");
        }
        true
    })
    .unwrap();
    output
}

const SCRIPT: &str = "</script><script>alert(1)</script> & \"quotes\"";

#[test]
fn claude_code_reads_back_what_is_visible() {
    let text = render(|out, head| Box::new(ClaudeCodeWriter::new(out, head)));
    let output = read_back(
        SourceFormat::ClaudeCode,
        "11111111-1111-4111-8111-111111111111.jsonl",
        &text,
    );
    assert_eq!(
        output,
        [
            "user: covered by the summary",
            "assistant: covered too",
            "summary They began.",
            "user: see",
            "file image/png",
            "thought Hm",
            "assistant: I look.",
            "call read",
            "result fn main() {}",
            "system: a note",
            "call read",
            "result No result was recorded.",
            &format!("user: {SCRIPT}"),
            "user: orphan",
            "assistant: the end",
        ]
    );
    // Every record follows the previous one; a summary starts a new chain.
    let mut last = serde_json::Value::Null;
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        if record["type"] != "custom-title" && record["subtype"] != "compact_boundary" {
            assert_eq!(record["parentUuid"], last);
        }
        last = record["uuid"].clone();
    }
}

#[test]
fn codex_reads_back_what_is_visible() {
    let text = render(|out, head| Box::new(CodexWriter::new(out, head)));
    let output = read_back(SourceFormat::Codex, "rollout-x.jsonl", &text);
    assert_eq!(
        output,
        [
            "user: covered by the summary",
            "assistant: covered too",
            "summary They began.",
            "user: see",
            "file image/png",
            "assistant: I look.",
            "call read",
            "result fn main() {}",
            "system: a note",
            "call read",
            "result No result was recorded.",
            &format!("user: {SCRIPT}"),
            "user: orphan",
            "assistant: the end",
        ]
    );
}

#[test]
fn pi_reads_back_what_is_visible() {
    let text = render(|out, head| Box::new(PiWriter::new(out, head)));
    let output = read_back(SourceFormat::Pi, "x.jsonl", &text);
    assert_eq!(
        output,
        [
            "user: covered by the summary",
            "assistant: covered too",
            "user: see",
            "file image/png",
            "thought Hm",
            "assistant: I look.",
            "call read",
            "result fn main() {}",
            "system: a note",
            "call read",
            "result No result was recorded.",
            &format!("user: {SCRIPT}"),
            "user: orphan",
            "assistant: the end",
            "summary They began. keeping",
        ]
    );
}

#[test]
fn a_page_holds_nothing_but_text_and_its_own_script() {
    let zone = jiff::tz::TimeZone::UTC;
    let page = render(|out, head| Box::new(HtmlWriter::new(out, head, zone)));
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    assert!(page.contains("src=\"data:image/png;base64,"));
    assert!(page.contains("taken back") && page.contains("user back"));
    for outside in ["http://", "https://", "//cdn", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_session_with_an_id_of_its_own_keeps_it() {
    let (birth, entries, _) = session();
    let mut head = metadata(&birth, &entries);
    assert_eq!(head.uuid("pi"), head.uuid("pi"));
    assert_ne!(head.uuid("pi"), head.uuid("codex"));
    let own = "0190E6A1-7c2b-7f3e-8a4d-5b6c7d8e9f00";
    head.info.id = own.parse().unwrap();
    assert_eq!(head.uuid("codex"), own.to_lowercase());
    assert_eq!(
        ClaudeCodeWriter::<Vec<u8>>::default_path(&head),
        format!("-work-app/{}.jsonl", own.to_lowercase())
    );
    assert!(PiWriter::<Vec<u8>>::default_path(&head).starts_with("--work-app--/2026-01-02T"));
    assert!(
        CodexWriter::<Vec<u8>>::default_path(&head).starts_with("2026/01/02/rollout-2026-01-02T")
    );
}
