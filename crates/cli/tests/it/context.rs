//! `tl context` and compaction from the command line.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

fn conversation(tl: &Tl) -> String {
    let id = tl.session("limiter", &[]);
    let mut lines = String::new();
    for n in 0..40 {
        lines.push_str(&format!(
            "{{\"role\":\"user\",\"content\":\"Please look at src/part_{n}.rs and explain it.\"}}\n\
             {{\"role\":\"assistant\",\"content\":\"It reads part {n} of the file. We decided to retry {n} times.\"}}\n"
        ));
    }
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    tl.ok(&["pin", &id, "Never touch prod"]);
    id
}

#[test]
fn a_request_is_drawn_section_by_section() {
    let tl = Tl::new();
    std::fs::write(tl.work().join("AGENTS.md"), "Use tabs.\n").unwrap();
    let id = conversation(&tl);
    tl.ok(&["context", "set", &id, "task", "Implement the limiter"]);
    let said = tl.run(&[
        "context",
        &id,
        "--message",
        "what next?",
        "--with",
        "window=900",
    ]);
    // Not a snapshot: the output contains the folder's name, whose length varies.
    let drawn = said.ok();
    let names: Vec<_> = drawn
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    for name in [
        "default",
        "agent",
        "context",
        "memory",
        "checkpoint",
        "recent",
        "message",
    ] {
        assert!(names.contains(&name), "{drawn}");
    }
    assert!(drawn.contains("of 900 tokens (o200k_base)"), "{drawn}");
    assert!(
        drawn.contains("left out: ") && drawn.contains("█"),
        "{drawn}"
    );
    for line in drawn.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let request = tl.json(&["context", &id]);
    let context = request["sections"][1]["text"].as_str().unwrap();
    assert!(context.contains("Use tabs.") && context.contains("Implement the limiter"));
}

#[test]
fn a_request_as_json_has_what_scripts_rely_on() {
    let tl = Tl::new();
    let id = conversation(&tl);
    let request = tl.json(&[
        "context",
        &id,
        "--message",
        "what was in src/part_3.rs?",
        "--budget",
        "700",
    ]);
    assert_eq!(
        (&request["policy"], &request["budget"]),
        (&"default".into(), &700.into())
    );
    assert!(request["tokens"].as_u64().unwrap() <= 700);
    let sections = request["sections"].as_array().unwrap();
    let names: Vec<_> = sections
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "agent",
            "context",
            "memory",
            "checkpoint",
            "recent",
            "recalled",
            "message"
        ]
    );
    let recent = &sections[4];
    assert_eq!(
        recent["entries"].as_array().unwrap().last().unwrap()["seq"],
        80
    );
    let messages = request["messages"].as_array().unwrap();
    // After the excerpts of relevant earlier messages.
    let last = messages.last().unwrap()["content"].as_array().unwrap();
    assert_eq!(last.last().unwrap()["text"], "what was in src/part_3.rs?");
}

#[test]
fn compaction_is_shown_undone_and_continued() {
    let tl = Tl::new();
    let id = conversation(&tl);
    let with = ["--with", "window=1500"];
    let done = tl.json(&["compact", &id, with[0], with[1]]);
    assert_eq!(
        (&done["how"], &done["by"]),
        (&"compacted".into(), &"extractive".into())
    );
    let view = tl.run(&["show", &id, "--checkpoint"]).ok();
    assert!(view.contains("\"messagesCompacted\""));
    assert_eq!(tl.texts(&id).len(), 80);
    let transcript = tl.ok(&["export", &id]);
    assert!(transcript.contains("<!-- SESSION_SUMMARY_START -->"));
    tl.ok(&["compact", &id, "--undo"]);
    assert_eq!(tl.run(&["compact", &id, "--undo"]).code(), Some(3));

    let next = tl.ok(&["continue", &id, "--name", "next"]);
    let shown = tl.json(&["show", next.trim()]);
    assert_eq!(shown["session"]["lineage"]["from"], "continued");
    assert!(
        shown["entries"][0]["prompt"]
            .as_str()
            .unwrap()
            .starts_with("CONTEXT RESTORATION")
    );
    assert!(tl.ok(&["tree", "next"]).contains("continued"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tl = Tl::new();
    let id = conversation(&tl);
    assert_output!(
        tl,
        "context_errors",
        tl.run(&["context", &id, "--policy", "nonsense"]),
        tl.run(&["context", &id, "--with", "widnow=3"]),
        tl.run(&["context", &id, "--with", "keep=some"]),
        tl.run(&[
            "context",
            &id,
            "--message",
            "a message that is too long for so few tokens",
            "--budget",
            "3"
        ]),
        tl.run(&["context", "set", &id, "task", "--file", "missing"]),
        tl.run(&["compact", "nowhere"]),
    );
}

#[test]
fn a_session_may_have_a_policy_of_its_own() {
    let tl = Tl::new();
    let id = conversation(&tl);
    tl.ok(&["context", "set", &id, "policy", "bot; window=700"]);
    let request = tl.json(&["context", &id]);
    assert_eq!(
        (&request["policy"], &request["budget"]),
        (&"sliding-window".into(), &700.into())
    );
    let asked = tl.json(&["context", &id, "--policy", "agent"]);
    assert_eq!(asked["policy"], "full-history");
    assert_eq!(
        tl.run(&["context", "set", &id, "policy", "nonsense"])
            .code(),
        Some(5)
    );
    tl.ok(&["context", "set", &id, "policy", "--remove"]);
    assert_eq!(tl.json(&["context", &id])["policy"], "default");
}
