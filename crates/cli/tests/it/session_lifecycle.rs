//! The lifecycle of a session, from creation to the trash and back.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

#[test]
fn the_first_screen_tells_what_to_type() {
    let tl = Tl::new();
    assert_output!(tl, "first_screen", tl.run(&[]));
}

#[test]
fn a_session_is_made_written_and_read() {
    let tl = Tl::new();
    let answer = r##"{"role":"assistant","content":"# Plan\n\nUse **Redis**:\n\n- fast\n- known\n\n```sh\nredis-cli ping\n```","model":"m-1","usage":{"input":1200,"output":80}}"##;
    assert_output!(
        tl,
        "made_written_read",
        tl.run(&[
            "new",
            "--name",
            "Auth & Sessions!",
            "--agent",
            "pm",
            "--tag",
            "work"
        ]),
        tl.run(&["append", "auth-sessions", "How do we store sessions?"]),
        tl.run_with(&["append", "auth-sessions", "--json"], answer.as_bytes()),
        tl.run(&["pin", "auth-sessions", "Tokens live 15 minutes"]),
        tl.run(&["decide", "auth-sessions", "Use Redis"]),
        tl.run(&["describe", "auth-sessions", "Where sessions are kept"]),
        tl.run(&["tag", "auth-sessions", "redis", "#Auth"]),
        tl.run(&["untag", "auth-sessions", "work"]),
        tl.run(&["sessions"]),
        tl.run(&["show", "1"]),
        tl.run(&["stats", "1"]),
    );
}

#[test]
fn clearing_and_rewinding_hide_nothing_from_people() {
    let tl = Tl::new();
    let id = tl.session("s", &["one", "two", "three"]);
    assert_output!(
        tl,
        "clear_and_rewind",
        tl.run(&["rewind", &id, "--to", "1"]),
        tl.run(&["append", &id, "other two"]),
        tl.run(&["clear", &id]),
        tl.run(&["show", &id, "--all"]),
    );
    assert_eq!(tl.texts(&id), ["one", "two", "three", "other two"]);
}

#[test]
fn the_trash_gives_everything_back() {
    let tl = Tl::new();
    let id = tl.session("s", &["one"]);
    assert_output!(
        tl,
        "trash",
        tl.run(&["delete", "s"]),
        tl.run(&["sessions"]),
        tl.run(&["show", "s"]),
        tl.run(&["sessions", "--trash"]),
        tl.run(&["restore", "s"]),
        tl.run(&["restore", "s"]),
        tl.run(&["sessions"]),
    );
    assert_eq!(tl.texts(&id), ["one"]);
}

#[test]
fn a_purge_says_what_it_does_and_does_nothing_unasked() {
    let tl = Tl::new();
    for name in ["a", "b", "c"] {
        tl.session(name, &["x"]);
    }
    tl.ok(&["delete", "a"]);
    assert_output!(
        tl,
        "purge",
        tl.run(&["purge"]),
        tl.run(&[
            "purge",
            "--older-than",
            "0s",
            "--max-sessions",
            "1",
            "--dry-run"
        ]),
        tl.run(&["purge", "--older-than", "0s", "--max-sessions", "1"]),
        tl.run(&["sessions"]),
    );
    assert_eq!(tl.run(&["restore", "a"]).code(), Some(3));
}

#[test]
fn archived_sessions_are_put_away_and_counted() {
    let tl = Tl::new();
    tl.session("kept", &["x"]);
    tl.session("away", &["x"]);
    assert_output!(
        tl,
        "archive",
        tl.run(&["archive", "away"]),
        tl.run(&["archive", "away"]),
        tl.run(&["sessions"]),
        tl.run(&["sessions", "--all"]),
        tl.run(&["unarchive", "away"]),
    );
    let shown = tl.json(&["show", "away"]);
    let kinds: Vec<_> = shown["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["kind"])
        .collect();
    assert_eq!(kinds, ["message", "archived", "unarchived"]);
}

#[test]
fn names_keys_and_numbers_all_name_a_session() {
    let tl = Tl::new();
    let id = tl.session("by-name", &["x"]);
    tl.ok(&["open", "--key", "telegram:123456"]);
    tl.ok(&["sessions"]);
    let of = |spec: &str| {
        tl.json(&["show", spec])["session"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(of("by-name"), id);
    assert_eq!(of(&id), id);
    assert_eq!(of("2"), id);
    assert_ne!(of("telegram:123456"), id);
    assert_eq!(of("last"), of("1"));
}

#[test]
fn a_key_finds_the_same_session_again() {
    let tl = Tl::new();
    let open = |args: &[&str]| {
        let args: Vec<_> = ["open"].iter().chain(args).copied().collect();
        tl.json(&args)
    };
    let feature = open(&["--feature", "auth", "--agent", "pm"]);
    assert_eq!(feature["key"], "pm-feature-auth");
    assert_eq!(feature["existed"], false);
    let again = open(&["--key", "pm-feature-auth"]);
    assert_eq!(
        (&again["id"], &again["existed"]),
        (&feature["id"], &true.into())
    );
    let task = open(&[
        "--feature",
        "auth",
        "--agent",
        "dev",
        "--task",
        "t1",
        "--state",
        "in_dev",
    ]);
    assert_eq!(task["key"], "dev-task-auth-t1-in_dev");
}

#[test]
fn erased_content_is_gone_from_the_file() {
    let tl = Tl::new();
    let id = tl.session("s", &["fine", "my password is hunter2hunter2", "also fine"]);
    assert_eq!(tl.run(&["erase", &id, "2"]).code(), Some(5));
    tl.ok(&["erase", &id, "2", "--reason", "a password", "--yes"]);
    assert_output!(tl, "erase", tl.run(&["show", &id]), tl.run(&["doctor"]));
    for file in [tl.store(), tl.home().join("sessions.db-wal")] {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes.windows(14).any(|window| window == b"hunter2hunter2");
        assert!(!found, "the content is still in {}", file.display());
    }
}
