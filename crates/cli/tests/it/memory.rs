//! Memory across sessions, from the command line.

use crate::assert_output;
use crate::harness::{Tl, regex_escape, run_to_end};

/// Creates a conversation long enough for a summary, with facts to find in it.
fn long_session(tl: &Tl) -> String {
    let filler = "we talked about many other things here, none of which matter. ".repeat(12);
    let id = tl.ok(&["new", "--name", "limiter"]).trim().to_owned();
    for n in 0..20 {
        let said = match n {
            2 => "We decided to use a token bucket for the rate limiter.".to_owned(),
            4 => "The staging server runs on port 9443.".to_owned(),
            _ => format!("Message {n}: {filler}"),
        };
        tl.ok(&["append", &id, &said]);
    }
    id
}

#[test]
fn facts_are_added_listed_edited_and_forgotten() {
    let tl = Tl::new();
    std::fs::create_dir(tl.work().join("src")).unwrap();
    assert_output!(
        tl,
        "memory",
        tl.run(&["memory"]),
        tl.run(&["memory", "add", "The port is 8080"]),
        tl.run(&["memory", "add", "the", "port", "is", "8080."]),
        tl.run(&["memory", "add", "The port is 9090"]),
        tl.run(&["memory", "add", "Tokens expire after an hour, and are renewed in the background by a thread of their own", "--file", "src/auth.rs"]),
        tl.run(&["memory", "add", "Answer in English", "--owner-wide"]),
        tl.run(&["memory", "list"]),
        tl.run(&["memory", "list", "--file", "src"]),
        tl.run(&["memory", "edit", "2", "The port is 9091"]),
        tl.run(&["memory", "forget", "o1", "--reason", "we are all Swiss"]),
        tl.run(&["memory", "list", "--all"]),
        tl.run(&["memory", "search", "port"]),
        tl.run(&["memory", "history", "4"]),
        tl.run(&["memory", "history"]),
    );
}

#[test]
fn tables_fit_the_screen() {
    let tl = Tl::new();
    let long = "word ".repeat(60);
    tl.ok(&[
        "memory",
        "add",
        &long,
        "--file",
        "a/very/long/path/to/some/file.rs",
    ]);
    for line in tl.ok(&["memory"]).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn errors_are_reported_with_what_to_do() {
    let tl = Tl::new();
    tl.ok(&["memory", "add", "The port is 8080"]);
    tl.ok(&["memory", "add", "The port is 9090"]);
    assert_output!(
        tl,
        "memory_errors",
        tl.run(&["memory", "add", " "]),
        tl.run(&["memory", "add", "the password is hunter2"]),
        tl.run(&["memory", "add", "x", "--file", "/etc/hosts"]),
        tl.run(&["memory", "add", "x", "--source", "nowhere"]),
        tl.run(&["memory", "add", "x", "--supersedes", "o1"]),
        tl.run(&["memory", "edit", "1", "The port is 1"]),
        tl.run(&["memory", "forget", "7"]),
        tl.run(&["memory", "forget", "seven"]),
        tl.run(&["memory", "promote", "o7"]),
        tl.run(&["memory", "list", "--project", "nowhere"]),
        tl.run(&["memory", "import", "missing.md"]),
        tl.run(&["new", "--key", "throughline:memory:owner"]),
    );
    assert_eq!(
        tl.ok(&["memory", "add", "the password is hunter2", "--force"]),
        "3\n"
    );
}

#[test]
fn a_fact_keeps_where_it_came_from() {
    let tl = Tl::new();
    tl.session("auth", &["Sessions are kept in Redis."]);
    tl.ok(&[
        "memory",
        "add",
        "Sessions are kept in Redis",
        "--source",
        "auth:1",
    ]);
    let facts = tl.json(&["memory", "list"]);
    let fact = &facts["facts"][0];
    assert_eq!(fact["source"]["seq"], 1);
    assert_eq!(fact["by"], "person");
    assert_eq!(fact["scope"], "project");
    let missing = tl.run(&["memory", "add", "x", "--source", "auth:9"]);
    assert_eq!(missing.code(), Some(3));
}

#[test]
fn what_is_remembered_is_sent_and_the_memory_itself_is_not_listed() {
    let tl = Tl::new();
    tl.session("auth", &["hello"]);
    tl.ok(&["memory", "add", "The port is 8080"]);
    let request = tl.json(&["context", "auth"]);
    let sections = request["sections"].as_array().unwrap();
    let memory = sections
        .iter()
        .find(|section| section["name"] == "memory")
        .unwrap();
    assert!(
        memory["text"]
            .as_str()
            .unwrap()
            .contains("- The port is 8080")
    );

    let count = |args: &[&str]| tl.json(args)["sessions"].as_array().unwrap().len();
    assert_eq!(count(&["sessions"]), 1);
    assert_eq!(count(&["sessions", "--own"]), 2);
    assert_eq!(tl.json(&["stats"])["sessions"], 1);
    assert!(tl.ok(&["show", "last"]).contains("hello"));
    let elsewhere = tl.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(elsewhere.join(".throughline")).unwrap();
    let args = ["memory", "list", "--json"];
    let there = run_to_end(tl.command_in(&elsewhere, &args), &args, b"").ok();
    let there: serde_json::Value = serde_json::from_str(&there).unwrap();
    assert_eq!(there["facts"].as_array().unwrap().len(), 0);
    assert!(tl.run(&["doctor"]).code() == Some(0));
}

#[test]
fn what_a_summary_finds_waits_for_the_persons_word() {
    let tl = Tl::new();
    let id = long_session(&tl);
    let compacted = tl.run(&["compact", &id, "--with", "keep=2 messages"]);
    compacted.ok();
    assert!(
        compacted
            .stderr()
            .contains("proposed for memory: tl memory list --proposed"),
        "{compacted}"
    );
    assert_eq!(
        tl.json(&["memory", "list"])["facts"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    let proposed = tl.json(&["memory", "list", "--proposed"]);
    let proposed = proposed["facts"].as_array().unwrap();
    let bucket = proposed
        .iter()
        .find(|fact| fact["text"].as_str().unwrap().contains("token bucket"))
        .unwrap();
    assert_eq!(bucket["source"]["session"], id.as_str());
    assert_eq!(bucket["by"], "extractive");
    tl.ok(&["memory", "accept", bucket["id"].as_str().unwrap()]);
    let facts = tl.json(&["memory", "list"]);
    assert_eq!(facts["facts"][0]["proposed"], false);
    tl.ok(&["memory", "accept", "--all"]);
    assert_eq!(tl.json(&["memory"])["hidden"]["proposed"], 0);
}

#[test]
fn summaries_propose_nothing_where_that_is_configured() {
    let tl = Tl::new();
    let id = long_session(&tl);
    let args = ["compact", &id, "--with", "keep=2 messages"];
    let mut command = tl.command(&args);
    command.env("TL_MEMORY", "off");
    let compacted = run_to_end(command, &args, b"");
    compacted.ok();
    assert!(!compacted.stderr().contains("memory"), "{compacted}");
    assert_eq!(
        tl.json(&["memory", "list", "--all"])["facts"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn memory_goes_into_agents_md_and_comes_back() {
    let tl = Tl::new();
    let file = tl.work().join("AGENTS.md");
    std::fs::write(&file, "# Agents\n\nBe kind.\n").unwrap();
    tl.ok(&["memory", "add", "The port is 8080"]);
    tl.ok(&[
        "memory",
        "add",
        "Tokens expire after an hour",
        "--file",
        "src/auth.rs",
    ]);
    let wrote = tl.run(&["memory", "export", "-o", "AGENTS.md"]);
    let text = std::fs::read_to_string(&file).unwrap();
    let edited = text.replace(
        "- The port is 8080",
        "- The port is 9090\n- Tests need a database",
    );
    std::fs::write(&file, &edited).unwrap();
    assert_output!(
        tl,
        "memory_section",
        wrote,
        text,
        tl.run(&["memory", "import", "AGENTS.md"]),
        tl.run(&["memory", "import", "AGENTS.md"]),
        tl.run(&["memory", "list"]),
        tl.run(&["memory", "export"]),
    );
}

#[test]
fn a_promoted_fact_is_owner_wide() {
    let tl = Tl::new();
    tl.ok(&["memory", "add", "Answer in English"]);
    assert_eq!(tl.ok(&["memory", "promote", "1"]), "o1\n");
    let facts = tl.json(&["memory", "list"]);
    assert_eq!(facts["facts"].as_array().unwrap().len(), 1);
    assert_eq!(facts["facts"][0]["scope"], "owner");
}

#[test]
fn a_memory_moves_with_an_export_of_everything() {
    let (here, there) = (Tl::new(), Tl::new());
    here.ok(&["memory", "add", "Answer in English", "--owner-wide"]);
    let all = here.ok(&["export", "--all", "--format", "jsonl"]);
    there.run_with(&["import", "-"], all.as_bytes()).ok();
    assert_eq!(
        there.json(&["memory"])["facts"][0]["text"],
        "Answer in English"
    );
}
