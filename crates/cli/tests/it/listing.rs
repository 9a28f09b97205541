//! Listing and showing sessions, for people and for scripts.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

#[test]
fn a_listing_as_json_has_what_scripts_rely_on() {
    let tl = Tl::new();
    tl.session("one", &["a", "b"]);
    tl.session("two", &[]);
    let listing = tl.json(&["sessions"]);
    let sessions = listing["sessions"].as_array().unwrap();
    let of = |n: usize, key: &str| &sessions[n][key];
    assert_eq!(
        (of(1, "name"), of(1, "messages")),
        (&"one".into(), &2.into())
    );
    assert_eq!(of(0, "name"), "two");
    assert!(of(0, "id").is_string());
    assert!(listing["next"].is_null());
}

#[test]
fn sessions_are_listed_by_whatever_name_one_tries_first() {
    let tl = Tl::new();
    tl.ok(&["new", "--name", "auth"]);
    let listed = tl.ok(&["sessions"]);
    assert_eq!(tl.ok(&["ls"]), listed);
    assert_eq!(tl.ok(&["list"]), listed);
}

#[test]
fn pages_follow_one_another() {
    let tl = Tl::new();
    for n in 0..7 {
        tl.session(&format!("s{n}"), &[]);
    }
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut args = vec!["sessions", "--limit", "3"];
        if let Some(cursor) = &cursor {
            args.extend(["--cursor", cursor]);
        }
        let page = tl.json(&args);
        for session in page["sessions"].as_array().unwrap() {
            seen.push(session["name"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
}

#[test]
fn filters_narrow_a_listing() {
    let tl = Tl::new();
    tl.ok(&["new", "--name", "a", "--agent", "pm", "--tag", "x"]);
    tl.ok(&[
        "new", "--name", "b", "--agent", "dev", "--tag", "x", "--tag", "y",
    ]);
    let names = |args: &[&str]| -> Vec<String> {
        let args: Vec<_> = ["sessions"].iter().chain(args).copied().collect();
        let listing = tl.json(&args);
        let sessions = listing["sessions"].as_array().unwrap();
        sessions
            .iter()
            .map(|s| s["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&["--tag", "x"]), ["b", "a"]);
    assert_eq!(names(&["--tag", "x", "--tag", "y"]), ["b"]);
    assert_eq!(names(&["--agent", "pm"]), ["a"]);
    assert_eq!(names(&["--since", "1h"]), ["b", "a"]);
    assert_eq!(names(&["--since", "2999-01-01"]), [] as [&str; 0]);
    assert_eq!(names(&["--status", "archived"]), [] as [&str; 0]);
    assert_eq!(names(&["--project", "."]), ["b", "a"]);
}

#[test]
fn wide_listings_fit_eighty_columns() {
    let tl = Tl::new();
    tl.session(&"very-long-name-".repeat(4), &["x"]);
    let id = tl.ok(&["new"]);
    tl.ok(&["append", id.trim(), &"東京 many words ".repeat(30)]);
    tl.ok(&["tag", id.trim(), "first-tag", "second-tag", "third-tag"]);
    let said = tl.run(&["sessions"]);
    for line in said.stdout().lines() {
        let width: usize = line
            .chars()
            .map(|c| if c > '\u{2e80}' { 2 } else { 1 })
            .sum();
        assert!(width <= 80, "{width} columns: {line}");
    }
    assert_output!(tl, "wide_listing", said);
}

#[test]
fn a_stretch_of_a_session_is_shown() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let lines: String = (1..=60)
        .map(|n| format!("{{\"role\":\"user\",\"content\":\"message {n}\"}}\n"))
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    assert_output!(
        tl,
        "stretches",
        tl.run(&["show", &id, "--last", "2"]),
        tl.run(&["show", &id, "--around", "30"]),
        tl.run(&["show", &id, "--from", "59"]),
    );
    let page = tl.json(&["show", &id, "--from", "10", "--limit", "5"]);
    let seqs: Vec<_> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["seq"])
        .collect();
    assert_eq!(seqs, [10, 11, 12, 13, 14]);
    assert_eq!(page["next"], 15);
    assert_eq!(
        tl.json(&["show", &id, "--all"])["entries"]
            .as_array()
            .unwrap()
            .len(),
        60
    );
}

#[test]
fn the_working_set_and_checkpoint_are_documents() {
    let tl = Tl::new();
    let id = tl.session("s", &["see src/lib.rs"]);
    tl.ok(&["pin", &id, "a fact"]);
    tl.ok(&["decide", &id, "a decision"]);
    assert_output!(
        tl,
        "documents",
        tl.run(&["show", &id, "--working-set"]),
        tl.run(&["show", &id, "--checkpoint"]),
    );
}
