//! Tests of agent files: parsing, errors, and where they are searched for.

use std::path::PathBuf;

use super::*;

const FULL: &str = "---
name: Reviewer
description: Reads code and says what is wrong with it
model: claude-opus-5-5
policy: aiarmy
tools:
  - Run the tests before you answer.
  - Never push.
color: green   # as another program wants it
---

You review code.

Be kind.
";

fn parse(text: &str) -> Result<AgentFile, AgentFileError> {
    AgentFile::parse(text, "agents/reviewer.md")
}

#[test]
fn an_agent_is_its_front_matter_and_its_role() {
    let agent = parse(FULL).unwrap();
    assert_eq!(agent.name, "Reviewer");
    assert_eq!(agent.policy.as_deref(), Some("aiarmy"));
    assert_eq!(agent.role, "You review code.\n\nBe kind.");
    assert_eq!(
        agent.describe(),
        "You review code.\n\nBe kind.\n\n# Tools\n\n- Run the tests before you answer.\n- Never push."
    );
    let spec = agent.model_spec().unwrap();
    assert_eq!(
        (spec.provider, spec.model.as_deref()),
        (None, Some("claude-opus-5-5"))
    );
}

#[test]
fn what_means_nothing_is_kept_and_reported() {
    let agent = parse(FULL).unwrap();
    assert_eq!(agent.unknown["color"], (9, Value::from("green")));
    assert_eq!(
        agent.warnings(),
        ["agents/reviewer.md, line 9: unknown field `color`"]
    );
}

#[test]
fn little_is_enough() {
    for text in [
        "You help.\n",
        "---\n---\nYou help.",
        "\u{feff}---\r\n# nothing yet\r\n---\r\nYou help.\r\n",
        "---\nname:\nmodel: inherit\n...\nYou help.",
    ] {
        let agent = parse(text).unwrap();
        assert_eq!(
            (agent.name.as_str(), agent.role.as_str()),
            ("reviewer", "You help.")
        );
        assert_eq!(agent.model_spec(), Ok(ModelSpec::default()));
        assert!(agent.warnings().is_empty());
    }
}

#[test]
fn a_line_in_the_role_is_no_front_matter() {
    let agent = parse("You help.\n---\nname: x\n---\n").unwrap();
    assert_eq!(
        (agent.name.as_str(), agent.role.len()),
        ("reviewer", 26 - 1)
    );
}

#[test]
fn tools_may_be_one_text() {
    let agent = parse("---\ntools: |\n  Use them\n  well.\n---\n").unwrap();
    assert_eq!(agent.describe(), "# Tools\n\nUse them\nwell.");
}

#[test]
fn a_provider_and_its_model_may_stand_apart() {
    let text = "---\nprovider: openrouter\nmodel: openai/gpt-4o\nbase_url: http://h/v1\n---\n";
    let spec = parse(text).unwrap().model_spec().unwrap();
    assert_eq!(spec.provider.as_deref(), Some("openrouter"));
    assert_eq!(spec.model.as_deref(), Some("openai/gpt-4o"));
    assert_eq!(spec.base_url.as_deref(), Some("http://h/v1"));
}

#[test]
fn an_error_says_where() {
    for (text, expected) in [
        ("---\nname: x\n", "line 1: the front matter is not closed"),
        (
            "---\nname: x\nmodel: [a]\n---\n",
            "line 3: model must be a string",
        ),
        (
            "---\n\ntools: {a: 1}\n---\n",
            "line 3: tools must be a string or a list of strings",
        ),
        (
            "---\ntools: [1]\n---\n",
            "line 2: tools must be a string or a list of strings",
        ),
        ("---\nname: x\nname: y\n---\n", "line 3: name is set twice"),
        ("---\nname: \"x\n---\n", "line "),
        ("---\njust words\n---\n", "line 2: write `name: value`"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        let begins = format!("agents/reviewer.md, {expected}");
        assert!(error.starts_with(&begins), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn an_agent_is_looked_for_near_and_then_far() {
    let (project, config) = (Path::new("/p"), Path::new("/c"));
    let found = agent_candidates("reviewer", Some(project), config);
    let paths = [
        "/p/.throughline/agents/reviewer.md",
        "/c/agents/reviewer.md",
    ];
    assert_eq!(found, paths.map(PathBuf::from));
    assert_eq!(agent_candidates("reviewer", None, config).len(), 1);
    for path in ["./reviewer.md", "reviewer.md", "agents/reviewer", "/x/y.md"] {
        assert_eq!(
            agent_candidates(path, Some(project), config),
            [PathBuf::from(path)]
        );
    }
}
