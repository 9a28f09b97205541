//! Hostile and very large input.

use crate::harness::Tl;

#[test]
fn text_that_is_not_utf8_is_refused_unless_told_otherwise() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let refused = tl.run_with(&["append", &id], b"caf\xe9");
    assert_eq!(refused.code(), Some(5));
    assert!(refused.stderr().contains("not UTF-8 at byte 3"));
    tl.run_with(&["append", &id, "--lossy"], b"caf\xe9").ok();
    assert_eq!(tl.texts(&id), ["caf\u{fffd}"]);
    let lines = tl.run_with(
        &["append", &id, "--json"],
        b"\xff\n{\"role\":\"user\",\"content\":\"fine\"}\n",
    );
    assert_eq!(lines.code(), Some(5));
    assert_eq!(tl.texts(&id)[1], "fine");
}

#[test]
fn control_characters_are_kept_and_never_reach_the_terminal() {
    let tl = Tl::new();
    let id = tl.session("s", &["a\u{1b}[2Jb\u{7}\u{202e}c"]);
    let line = br#"{"role":"user","content":"nul \u0000, lone \ud800, done"}"#;
    tl.run_with(&["append", &id, "--json"], line).ok();
    assert_eq!(tl.texts(&id)[0], "a\u{1b}[2Jb\u{7}\u{202e}c");
    assert_eq!(tl.texts(&id)[1], "nul \0, lone \u{fffd}, done");
    for said in [
        tl.ok(&["show", &id]),
        tl.ok(&["sessions"]),
        tl.ok(&["tree", &id]),
    ] {
        assert!(
            !said.contains(['\u{1b}', '\u{7}', '\u{202e}', '\0']),
            "{said:?}"
        );
    }
}

#[test]
fn a_hundred_megabytes_in_one_message_are_stored() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let huge = vec![b'x'; 100 * 1024 * 1024];
    assert_eq!(tl.run_with(&["append", &id], &huge).ok(), "1\n");
    tl.ok(&["append", &id, "after"]);
    let tail = tl.json(&["show", &id, "--last", "1"]);
    assert_eq!(tail["entries"][0]["content"], "after");
    assert_eq!(tl.texts(&id)[0].len(), huge.len());
}

#[test]
fn a_message_too_large_is_refused_and_nothing_is_lost() {
    let tl = Tl::new();
    let id = tl.session("s", &["before"]);
    let refused = tl.run_with(&["append", &id], &vec![b'x'; 257 * 1024 * 1024]);
    assert_eq!(refused.code(), Some(5), "{}", refused.stderr());
    assert!(refused.stderr().contains("too large"));
    assert_eq!(tl.texts(&id), ["before"]);
}

#[test]
fn many_tiny_messages_are_no_problem() {
    let tl = Tl::new();
    let mut lines = String::new();
    for n in 0..100_000 {
        lines.push_str(&format!(
            "{{\"session\":\"s{}\",\"role\":\"user\",\"content\":\"{n}\"}}\n",
            n % 10
        ));
    }
    tl.run_with(&["import", "-"], lines.as_bytes()).ok();
    let listing = tl.json(&["sessions"]);
    for session in listing["sessions"].as_array().unwrap() {
        assert_eq!(session["messages"], 10_000);
    }
}

#[test]
fn deep_json_is_kept_up_to_a_limit() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let call = |deep: &str| {
        format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_call","id":"c","name":"t","input":{deep}}}]}}"#
        )
    };
    let append = |line: &str| tl.run_with(&["append", &id, "--json"], line.as_bytes());
    append(&call(&nested(250))).ok();
    tl.ok(&["show", &id]);
    for line in [call(&nested(50_000)), nested(50_000)] {
        assert_eq!(append(&line).code(), Some(5));
    }
    assert_eq!(tl.json(&["doctor"])["ok"], true);
}

#[test]
fn hostile_names_ids_and_keys_are_refused() {
    let tl = Tl::new();
    for id in ["../x", "a/b", "con", "index", "", ".", "a b", "é"] {
        assert_ne!(tl.run(&["new", "--id", id]).code(), Some(0), "{id:?}");
    }
    for name in ["../x", "con", "last_session", "///"] {
        assert_ne!(tl.run(&["new", "--name", name]).code(), Some(0), "{name:?}");
    }
    assert_ne!(tl.run(&["open", "--key", "a\nb"]).code(), Some(0));
    let injected = "'; DROP TABLE session; --";
    tl.ok(&["open", "--key", injected]);
    assert_eq!(tl.json(&["show", injected])["session"]["key"], injected);
}
