//! `tl search`: results, their display, and refused queries.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

fn tl_with_messages() -> Tl {
    let tl = Tl::new();
    tl.session(
        "auth",
        &[
            "We keep refresh tokens in Redis on port 6380.",
            "The login fails with error E0308 in src/auth/token.rs.",
        ],
    );
    tl.session("lunch", &["The soup was too salty again."]);
    tl
}

#[test]
fn hits_are_shown_by_session_with_how_to_open_them() {
    let tl = tl_with_messages();
    assert_output!(
        tl,
        "search",
        tl.run(&["search", "which", "port", "has", "redis"]),
        tl.run(&["search", "E0308"]),
        tl.run(&["search", "soup", "--context", "1"]),
        tl.run(&["search", "\"refresh tokens\" session:auth"]),
        tl.run(&["search", "zebra", "--mode", "text"]),
        tl.run(&["search", "tokens refersh", "--mode", "text"]),
    );
}

#[test]
fn as_json_every_hit_says_where_it_is_and_why() {
    let tl = tl_with_messages();
    let found = tl.json(&["search", "redis port"]);
    assert_eq!(found["query"], "redis port");
    let hit = &found["hits"][0];
    assert_eq!(hit["seq"], 1);
    assert_eq!(hit["role"], "user");
    assert_eq!(hit["name"], "auth");
    assert!(hit["snippet"].as_str().unwrap().contains("6380"));
    for part in ["text", "pooled", "late", "session"] {
        assert!(hit["why"][part].is_number(), "{part}");
    }
    assert!(found["took_ms"].is_number());
    assert_eq!(found["behind"], 0);
    assert!(found["watermark"].as_u64().unwrap() >= 3);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tl = tl_with_messages();
    assert_output!(
        tl,
        "search_errors",
        tl.run(&["search"]),
        tl.run(&["search", "soup", "--before", "soon"]),
        tl.run(&["search", "soup", "--role", "cook"]),
        tl.run(&["search", "soup", "--session", "nowhere"]),
        tl.run(&["search", "soup", "project:nowhere"]),
        tl.run(&["search", "soup", "--mode", "psychic"]),
    );
}

#[test]
fn an_index_that_is_deleted_is_made_again() {
    let tl = tl_with_messages();
    let count = |tl: &Tl| {
        tl.json(&["search", "redis"])["hits"]
            .as_array()
            .unwrap()
            .len()
    };
    let before = count(&tl);
    std::fs::remove_dir_all(tl.home().join("sessions.index")).unwrap();
    assert_eq!(count(&tl), before);
    tl.ok(&["doctor", "--rebuild"]);
    assert_eq!(count(&tl), before);
}

#[test]
fn two_processes_that_search_at_once_both_find() {
    let tl = tl_with_messages();
    let searches: Vec<_> = (0..4)
        .map(|_| {
            let mut command = tl.command(&["search", "redis", "--json"]);
            command
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for search in searches {
        let output = search.wait_with_output().unwrap();
        assert!(output.status.success());
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["hits"][0]["seq"], 1);
    }
}

#[test]
fn a_request_shows_what_it_brings_back() {
    let tl = tl_with_messages();
    let new = tl.ok(&["new", "--name", "new"]).trim().to_owned();
    let request = tl.json(&["context", &new, "--message", "Which port has Redis?"]);
    let sections = request["sections"].as_array().unwrap();
    let recalled = sections.iter().find(|s| s["name"] == "recalled").unwrap();
    assert_eq!(recalled["entries"][0]["seq"], 1);
    assert!(recalled["scores"][0].as_f64().unwrap() > 0.0);
    assert!(recalled["text"].as_str().unwrap().contains("6380"));
}
