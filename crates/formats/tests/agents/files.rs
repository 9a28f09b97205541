//! Tests readers of files.

use std::io::Write as _;

use throughline_formats::SourceFormat;

use crate::rendered_records::{fixture, read_to_text};

macro_rules! golden {
    ($($test:ident: $agent:ident, $file:literal;)+) => {$(
        #[test]
        fn $test() {
            let output = read_to_text(SourceFormat::$agent, &fixture($file));
            let mut settings = insta::Settings::clone_current();
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(stringify!($test), output));
        }
    )+};
}

golden! {
    claude_code_with_every_record: ClaudeCode, "claude-code/11111111-1111-4111-8111-111111111111.jsonl";
    claude_code_sub_agent: ClaudeCode, "claude-code/agent-0a1b2c3d.jsonl";
    claude_code_fork: ClaudeCode, "claude-code/22222222-2222-4222-8222-222222222222.jsonl";
    codex_with_every_record: Codex, "codex/rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl";
    codex_fork: Codex, "codex/rollout-2026-01-03T10-00-00-44444444-4444-4444-8444-444444444444.jsonl";
    codex_sub_agent: Codex, "codex/rollout-2026-01-03T11-00-00-55555555-5555-4555-8555-555555555555.jsonl";
    codex_names: Codex, "codex/session_index.jsonl";
    gemini_with_every_record: Gemini, "gemini/chats/session-2026-01-02T10-00-main1.jsonl";
    gemini_sub_agent: Gemini, "gemini/chats/main-1/sub-1.jsonl";
    gemini_older: Gemini, "gemini/chats/session-legacy.json";
    pi_with_every_entry: Pi, "pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl";
    goose_older: Goose, "goose/20250101_120000.jsonl";
    opencode_older: OpenCode, "opencode/storage/session/p1/ses_1.json";
    opencode_export: OpenCode, "opencode/export.json";
    chatgpt_and_claude_exports: ChatGpt, "chatgpt.json";
    conversations_items: Conversations, "items.json";
    plain_messages: Plain, "messages.json";
    aiarmy_session: AiArmy, "aiarmy/session-abc12345/full.json";
    bot_sessions: Bot, "sessions.json";
    agent_cli_session: AgentCli, "agent-cli/2026-01-04-14-32-15-001-abcd.json";
    dagent_session: Dagent, "dagent/session_pm-feature-auth.json";
}

/// Removes times of day, which depend on the machine's time zone.
fn without_times(output: &str) -> String {
    let words = output.split(' ');
    let words = words.filter(|word| !word.ends_with('Z') || !word.starts_with("20"));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn aider_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".aider.chat.history.md");
    std::fs::copy(fixture("aider.chat.history.md"), &path).unwrap();
    let output = without_times(&read_to_text(SourceFormat::Aider, &path));
    let output = output.replace(&folder.path().display().to_string(), "/work/app");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("aider_history", output));
}

#[test]
fn chat_loop_transcript() {
    let output = without_times(&read_to_text(
        SourceFormat::ChatLoop,
        &fixture("chat_loop.md"),
    ));
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("chat_loop_transcript", output));
}

#[test]
fn a_compressed_rollout_tells_the_same() {
    let name = "codex/rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl";
    let folder = tempfile::tempdir().unwrap();
    let plain = std::fs::read(fixture(name)).unwrap();
    let path = folder
        .path()
        .join("rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl.zst");
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let packed = ruzstd::encoding::compress_to_vec(&plain[..], level);
    std::fs::write(&path, packed).unwrap();
    assert_eq!(
        read_to_text(SourceFormat::Codex, &path),
        read_to_text(SourceFormat::Codex, &fixture(name))
    );
}

/// Creates a compressed file of blocks, each of which expands one byte to 128 KiB.
fn zstd_bomb(byte: u8, blocks: usize) -> Vec<u8> {
    // The magic number, no size, a window of 128 KiB.
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for block in 1..=blocks {
        let header = u32::from(block == blocks) | (1 << 1) | ((128 << 10) << 3);
        file.extend_from_slice(&header.to_le_bytes()[..3]);
        file.push(byte);
    }
    file
}

#[test]
fn a_compressed_file_that_expands_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder
        .path()
        .join("rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl.zst");
    for byte in [b'\n', b'x', 0] {
        // 128 MiB from 4 KiB.
        std::fs::write(&path, zstd_bomb(byte, 1_024)).unwrap();
        let read =
            throughline_formats::read_source(SourceFormat::Codex, &path, None, &mut |_| true);
        let error = read.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            source.contains("expands to more than 1000 times"),
            "{source}"
        );
    }
}

#[test]
fn whatever_the_bytes_are_no_reader_panics() {
    let folder = tempfile::tempdir().unwrap();
    let samples: [&[u8]; 12] = [
        b"",
        b"\0\xFF\xFE",
        b"{}",
        b"[]",
        b"[{}]",
        b"[[[[",
        b"{\"type\":7,\"payload\":[]}\n{\"type\":\"user\",\"message\":7,\"uuid\":\"x\"}\n",
        b"{\"type\":\"user\",\"message\":{\"content\":[[],{},7,null,{\"type\":\"tool_use\"}]}}\n",
        b"{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":7}}\n",
        b"{\"messages\":[null,1,{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}]}",
        b"SQLite format 3\0 and then nothing of the kind",
        b"{\"a\":{\"mapping\":{\"n\":{\"parent\":\"n\",\"children\":[\"n\"]}}}}",
    ];
    for (index, bytes) in samples.iter().enumerate() {
        for ending in ["jsonl", "json", "db", "md"] {
            let path = folder.path().join(format!("{index}.{ending}"));
            let mut file = std::fs::File::create(&path).unwrap();
            file.write_all(bytes).unwrap();
            SourceFormat::detect(&path);
            for agent in SourceFormat::ALL {
                // An error is fine; a panic would fail the test.
                let _ = throughline_formats::read_source(agent, &path, None, &mut |_| true);
            }
        }
    }
}

#[test]
fn a_tree_that_bites_its_tail_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.json");
    let tree = r#"[{"id":"c1234567","current_node":"b","mapping":{"a":{"parent":"b","children":["b"],
        "message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["x"]}}},
        "b":{"parent":"a","children":["a"]}}}]"#;
    std::fs::write(&path, tree).unwrap();
    assert!(read_to_text(SourceFormat::ChatGpt, &path).starts_with("session c1234567"));
}
