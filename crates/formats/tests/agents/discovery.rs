//! Tests source discovery and format detection.

use std::path::Path;

use throughline_formats::{DiscoveryContext, SourceFormat};

use crate::rendered_records::fixture;

#[test]
fn a_file_is_recognised_by_what_it_says() {
    for (name, agent) in [
        (
            "claude-code/11111111-1111-4111-8111-111111111111.jsonl",
            SourceFormat::ClaudeCode,
        ),
        ("claude-code/agent-0a1b2c3d.jsonl", SourceFormat::ClaudeCode),
        (
            "codex/rollout-2026-01-03T11-00-00-55555555-5555-4555-8555-555555555555.jsonl",
            SourceFormat::Codex,
        ),
        ("codex/session_index.jsonl", SourceFormat::Codex),
        (
            "gemini/chats/session-2026-01-02T10-00-main1.jsonl",
            SourceFormat::Gemini,
        ),
        ("gemini/chats/session-legacy.json", SourceFormat::Gemini),
        (
            "pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl",
            SourceFormat::Pi,
        ),
        ("goose/20250101_120000.jsonl", SourceFormat::Goose),
        ("aider.chat.history.md", SourceFormat::Aider),
        ("chatgpt.json", SourceFormat::ChatGpt),
        ("items.json", SourceFormat::Conversations),
        ("messages.json", SourceFormat::Plain),
        ("aiarmy/session-abc12345/full.json", SourceFormat::AiArmy),
        ("chat_loop.md", SourceFormat::ChatLoop),
        ("sessions.json", SourceFormat::Bot),
        (
            "agent-cli/2026-01-04-14-32-15-001-abcd.json",
            SourceFormat::AgentCli,
        ),
        ("dagent/session_pm-feature-auth.json", SourceFormat::Dagent),
    ] {
        assert_eq!(SourceFormat::detect(&fixture(name)), Some(agent), "{name}");
    }
}

#[test]
fn a_folder_gives_its_sources_in_order_and_names_last() {
    let names = |agent: SourceFormat, folder: &str| -> Vec<String> {
        let found = agent.find_sources(&fixture(folder));
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        found.iter().map(|source| name(&source.path)).collect()
    };
    let codex = names(SourceFormat::Codex, "codex");
    assert_eq!(codex.len(), 4);
    assert_eq!(codex[3], "session_index.jsonl");
    assert_eq!(names(SourceFormat::AgentCli, "agent-cli").len(), 1);
    assert_eq!(names(SourceFormat::Dagent, "dagent").len(), 1);
    assert_eq!(names(SourceFormat::OpenCode, "opencode"), ["ses_1.json"]);
    assert_eq!(names(SourceFormat::Gemini, "gemini").len(), 3);
    assert!(names(SourceFormat::Pi, "not there").is_empty());
}

#[test]
fn the_environment_says_where_to_look() {
    let none = |_: &str| None;
    let around = DiscoveryContext {
        home: Some(Path::new("/home/me")),
        folder: Path::new("/work"),
        variable: &none,
    };
    let places = |agent: SourceFormat, around: &DiscoveryContext<'_>| -> Vec<String> {
        let places = agent.default_paths(around);
        places
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    assert_eq!(
        places(SourceFormat::ClaudeCode, &around),
        ["/home/me/.claude/projects"]
    );
    assert_eq!(
        places(SourceFormat::Gemini, &around),
        ["/home/me/.gemini/tmp"]
    );
    assert_eq!(
        places(SourceFormat::Goose, &around),
        ["/home/me/.local/share/goose/sessions"]
    );
    let some = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| "conf".to_owned());
    let around = DiscoveryContext {
        variable: &some,
        ..around
    };
    assert_eq!(
        places(SourceFormat::ClaudeCode, &around),
        ["/work/conf/projects"]
    );
    let around = DiscoveryContext {
        home: None,
        ..around
    };
    assert_eq!(
        places(SourceFormat::ClaudeCode, &around),
        ["/work/conf/projects"]
    );
    assert!(places(SourceFormat::Codex, &around).is_empty());
    assert_eq!(
        places(SourceFormat::AiArmy, &around),
        ["/work/.aiarmy/sessions"]
    );
}

#[test]
fn every_agent_answers_to_its_name() {
    for agent in SourceFormat::ALL {
        assert_eq!(agent.name().parse::<SourceFormat>().unwrap(), agent);
    }
    let unknown = "clod".parse::<SourceFormat>().unwrap_err().to_string();
    assert!(unknown.contains("claude-code"), "{unknown}");
}
