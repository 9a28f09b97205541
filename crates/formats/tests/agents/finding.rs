//! Finding sources, and telling whose a file is.

use std::path::Path;

use throughline_formats::{Agent, Around};

use crate::told::fixture;

#[test]
fn a_file_is_recognised_by_what_it_says() {
    for (name, agent) in [
        (
            "claude-code/11111111-1111-4111-8111-111111111111.jsonl",
            Agent::ClaudeCode,
        ),
        ("claude-code/agent-0a1b2c3d.jsonl", Agent::ClaudeCode),
        (
            "codex/rollout-2026-01-03T11-00-00-55555555-5555-4555-8555-555555555555.jsonl",
            Agent::Codex,
        ),
        ("codex/session_index.jsonl", Agent::Codex),
        (
            "gemini/chats/session-2026-01-02T10-00-main1.jsonl",
            Agent::Gemini,
        ),
        ("gemini/chats/session-legacy.json", Agent::Gemini),
        (
            "pi/2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl",
            Agent::Pi,
        ),
        ("goose/20250101_120000.jsonl", Agent::Goose),
        ("aider.chat.history.md", Agent::Aider),
        ("chatgpt.json", Agent::ChatGpt),
        ("items.json", Agent::Conversations),
        ("messages.json", Agent::Plain),
        ("aiarmy/session-abc12345/full.json", Agent::AiArmy),
        ("chat_loop.md", Agent::ChatLoop),
        ("sessions.json", Agent::Bot),
        (
            "agent-cli/2026-01-04-14-32-15-001-abcd.json",
            Agent::AgentCli,
        ),
        ("dagent/session_pm-feature-auth.json", Agent::Dagent),
    ] {
        assert_eq!(Agent::of(&fixture(name)), Some(agent), "{name}");
    }
}

#[test]
fn a_folder_gives_its_sources_in_order_and_names_last() {
    let names = |agent: Agent, folder: &str| -> Vec<String> {
        let found = agent.sources(&fixture(folder));
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        found.iter().map(|source| name(&source.path)).collect()
    };
    let codex = names(Agent::Codex, "codex");
    assert_eq!(codex.len(), 4);
    assert_eq!(codex[3], "session_index.jsonl");
    assert_eq!(names(Agent::AgentCli, "agent-cli").len(), 1);
    assert_eq!(names(Agent::Dagent, "dagent").len(), 1);
    assert_eq!(names(Agent::OpenCode, "opencode"), ["ses_1.json"]);
    assert_eq!(names(Agent::Gemini, "gemini").len(), 3);
    assert!(names(Agent::Pi, "not there").is_empty());
}

#[test]
fn the_environment_says_where_to_look() {
    let none = |_: &str| None;
    let around = Around {
        home: Some(Path::new("/home/me")),
        folder: Path::new("/work"),
        variable: &none,
    };
    let places = |agent: Agent, around: &Around<'_>| -> Vec<String> {
        let places = agent.places(around);
        places
            .iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    assert_eq!(
        places(Agent::ClaudeCode, &around),
        ["/home/me/.claude/projects"]
    );
    assert_eq!(places(Agent::Gemini, &around), ["/home/me/.gemini/tmp"]);
    assert_eq!(
        places(Agent::Goose, &around),
        ["/home/me/.local/share/goose/sessions"]
    );
    let some = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| "conf".to_owned());
    let around = Around {
        variable: &some,
        ..around
    };
    assert_eq!(places(Agent::ClaudeCode, &around), ["/work/conf/projects"]);
    let around = Around {
        home: None,
        ..around
    };
    assert_eq!(places(Agent::ClaudeCode, &around), ["/work/conf/projects"]);
    assert!(places(Agent::Codex, &around).is_empty());
    assert_eq!(places(Agent::AiArmy, &around), ["/work/.aiarmy/sessions"]);
}

#[test]
fn every_agent_answers_to_its_name() {
    for agent in Agent::ALL {
        assert_eq!(agent.name().parse::<Agent>().unwrap(), agent);
    }
    let unknown = "clod".parse::<Agent>().unwrap_err().to_string();
    assert!(unknown.contains("claude-code"), "{unknown}");
}
