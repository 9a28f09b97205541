//! Exporting and importing sessions.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

#[test]
fn markdown_is_also_called_md() {
    let tl = Tl::new();
    tl.ok(&["new", "--name", "auth"]);
    let written = tl.ok(&["export", "auth", "--format", "markdown"]);
    assert_eq!(tl.ok(&["export", "auth", "--format", "md"]), written);
}

#[test]
fn an_import_keeps_order_and_ids_and_doubles_nothing() {
    let tl = Tl::new();
    let lines = r#"{"session":"conv-1","role":"user","content":"hello","at":"2024-05-01T10:00:00Z","id":"D1:1","author":"Ada","name":"First Talk","project":"locals"}
{"session":"conv-1","role":"assistant","content":"hi","at":"2024-05-01T10:00:05Z","id":"D1:2","author":"Ben"}
{"session":"A Title With Spaces","role":"user","content":"other"}
{"session":"conv-1","role":"user","content":[{"type":"text","text":"blocks"},{"type":"hologram","x":1}],"id":"D1:3"}
{"session":"conv-1","role":"user","content":"ok"}
{"session":"conv-1","role":"user","content":"ok"}
nonsense
{"role":"user","content":"whose?"}
"#;
    std::fs::write(tl.work().join("chat.jsonl"), lines).unwrap();
    assert_output!(
        tl,
        "import",
        tl.run(&["import", "--format", "jsonl", "chat.jsonl"]),
        tl.run(&["import", "chat.jsonl"]),
        tl.run(&["sessions", "--json"]),
        tl.run(&["show", "conv-1", "--json"]),
        tl.run(&["sessions", "--project", "locals"]),
    );
    assert_eq!(tl.texts("a-title-with-spaces"), ["other"]);
}

#[test]
fn an_export_gives_the_same_session_elsewhere() {
    let (here, there) = (Tl::new(), Tl::new());
    let id = here.session("s", &["one", "two\u{1b}"]);
    here.ok(&["pin", &id, "a fact"]);
    let fork = here
        .ok(&["fork", &id, "--at", "1", "--name", "f"])
        .trim()
        .to_owned();
    here.ok(&["append", &fork, "three"]);
    for (format, session) in [("jsonl", &id), ("json", &fork)] {
        let file = there.work().join(format);
        let file = file.to_str().unwrap();
        here.ok(&["export", session, "--format", format, "-o", file]);
        assert_eq!(here.run(&["export", session, "-o", file]).code(), Some(5));
        there.ok(&["import", "--format", format, file]);
        there.ok(&["import", "--format", format, file]);
        let (a, b) = (
            here.json(&["show", session]),
            there.json(&["show", session]),
        );
        assert_eq!(a["entries"], b["entries"]);
        assert_eq!(a["session"]["digest"], b["session"]["digest"]);
    }
    let all = here.ok(&["export", "--all", "--format", "jsonl"]);
    let elsewhere = Tl::new();
    elsewhere.run_with(&["import", "-"], all.as_bytes()).ok();
    assert_eq!(
        elsewhere.json(&["sessions"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(elsewhere.json(&["doctor"])["ok"].as_bool().unwrap());
}

#[test]
fn a_log_that_was_tampered_with_is_refused() {
    let tl = Tl::new();
    let id = tl.session("s", &["pay 10"]);
    let log = tl
        .ok(&["export", &id, "--format", "jsonl"])
        .replace("pay 10", "pay 99");
    let elsewhere = Tl::new();
    let said = elsewhere.run_with(&["import", "-"], log.as_bytes());
    assert_output!(elsewhere, "tampered_log", said);
    assert!(
        elsewhere.json(&["sessions"])["sessions"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_transcript_reads_well_and_names_its_session() {
    let tl = Tl::new();
    tl.ok(&[
        "new",
        "--name",
        "limiter",
        "--agent",
        "Sally",
        "--agent-path",
        "agents/sally.md",
    ]);
    let lines = r#"{"role":"user","content":"Let's implement the rate limiter","at":"2026-01-05T14:30:45Z"}
{"role":"assistant","content":"Use a token bucket.\n\n## Query 9\nnot a heading of ours","at":"2026-01-05T14:30:48Z","latency_ms":3200,"usage":{"input":1123,"output":222}}
"#;
    tl.run_with(&["append", "limiter", "--json"], lines.as_bytes())
        .ok();
    assert_output!(
        tl,
        "transcript",
        tl.run(&["export", "limiter"]),
        tl.run(&["export", "limiter", "-o", "limiter.md"]),
        tl.run(&["show", "limiter.md", "--last", "1"]),
    );
    let leftovers: Vec<_> = std::fs::read_dir(tl.work()).unwrap().collect();
    assert_eq!(leftovers.len(), 1);
}

#[test]
fn attachments_are_kept_once_and_travel_with_the_log() {
    let (here, there) = (Tl::new(), Tl::new());
    let picture: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    std::fs::write(here.work().join("plan.png"), &picture).unwrap();
    let id = here.session("s", &[]);
    for _ in 0..3 {
        here.ok(&["append", &id, "look", "--attach", "plan.png"]);
    }
    assert_eq!(here.json(&["doctor"])["blobs"], 1);
    let shown = here.json(&["show", &id]);
    assert_eq!(shown["entries"][0]["content"][1]["media_type"], "image/png");

    let log = here.ok(&["export", &id, "--format", "jsonl"]);
    assert_eq!(log.matches("\"blob\":").count(), 1 + 3);
    there.run_with(&["import", "-"], log.as_bytes()).ok();
    assert_eq!(there.json(&["doctor"])["ok"], true);
    let written = there.ok(&["export", &id, "--attachments", "out"]);
    assert_eq!(written.lines().count(), 3);
    assert_eq!(
        std::fs::read(there.work().join("out/1-plan.png")).unwrap(),
        picture
    );
    assert_eq!(
        here.run(&["append", &id, "x", "--attach", "missing"])
            .code(),
        Some(5)
    );
}
