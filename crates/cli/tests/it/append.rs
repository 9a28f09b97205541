//! Appending, alone and concurrently.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

#[test]
fn a_stale_writer_is_refused_rebased_or_forked_as_it_asks() {
    let tl = Tl::new();
    let id = tl.session("s", &["one", "two"]);
    let late = |how: &str| tl.run(&["append", &id, "late", "--expect", "1", "--on-conflict", how]);
    assert_output!(
        tl,
        "conflicts",
        late("reject"),
        late("rebase"),
        late("fork")
    );
    assert_eq!(tl.texts(&id), ["one", "two", "late"]);
    let fork = tl.json(&["sessions"])["sessions"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(tl.texts(&fork), ["one", "late"]);
}

#[test]
fn an_outside_id_makes_a_repeat_harmless() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let line = br#"{"role":"user","content":"once","id":"m-1"}"#;
    let first = tl.run_with(&["append", &id, "--json"], line).ok();
    let again = tl.run_with(&["append", &id, "--json"], line).ok();
    let (first, again): (Value, Value) = (
        serde_json::from_str(&first).unwrap(),
        serde_json::from_str(&again).unwrap(),
    );
    assert_eq!((&first["seq"], &again["seq"]), (&1.into(), &1.into()));
    assert_eq!(again["how"], "repeated");
    assert_eq!(tl.texts(&id), ["once"]);
    let shown = tl.json(&["show", &id]);
    assert_eq!(shown["entries"][0]["external_id"], "m-1");
}

#[test]
fn each_line_is_acknowledged_before_the_next_is_sent() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let mut child = tl
        .command(&["append", &id, "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 1..=20 {
        writeln!(stdin, r#"{{"role":"user","content":"{n}"}}"#).unwrap();
        let ack: Value = serde_json::from_str(&acks.next().unwrap().unwrap()).unwrap();
        assert_eq!(ack["seq"], n);
        // It is durable: another process sees it.
        assert_eq!(tl.texts(&id).len(), n);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn bad_lines_are_reported_by_number_and_lose_no_good_ones() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let lines = "{\"role\":\"user\",\"content\":\"one\"}\nnot json\n\n{\"role\":\"wizard\",\"content\":\"x\"}\n{\"role\":\"user\",\"content\":\"two\"}\n";
    assert_output!(
        tl,
        "append_bad_lines",
        tl.run_with(&["append", &id, "--json"], lines.as_bytes())
    );
    assert_eq!(tl.texts(&id), ["one", "two"]);
}

#[test]
fn a_stream_can_be_held_to_a_head() {
    let tl = Tl::new();
    let id = tl.session("s", &["one"]);
    let lines =
        b"{\"role\":\"user\",\"content\":\"two\"}\n{\"role\":\"user\",\"content\":\"three\"}\n";
    let args = ["append", &id, "--json", "--expect", "1"];
    assert_eq!(tl.run_with(&args, lines).ok().lines().count(), 2);
    assert_eq!(tl.run_with(&args, lines).code(), Some(4));
    assert_eq!(tl.texts(&id), ["one", "two", "three"]);
}

#[test]
fn text_comes_from_stdin_too() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    assert_eq!(tl.run_with(&["append", &id], b"two\nlines\n").ok(), "1\n");
    assert_eq!(
        tl.run_with(&["append", &id, "--role", "assistant"], b"answer")
            .ok(),
        "2\n"
    );
    assert_eq!(tl.texts(&id), ["two\nlines", "answer"]);
    assert_eq!(tl.run_with(&["append", &id], b"").code(), Some(5));
}

#[test]
fn asked_to_stop_it_reports_everything_that_it_stored() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("TERM", 143)] {
        let tl = Tl::new();
        let id = tl.session("s", &[]);
        let mut child = tl
            .command(&["append", &id, "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writing = std::thread::spawn(move || {
            // Until the reader is gone.
            let line = b"{\"role\":\"user\",\"content\":\"more\"}\n";
            while stdin.write_all(line).is_ok() {}
        });
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..50 {
            acks.next().unwrap().unwrap();
        }
        let mut kill = std::process::Command::new("kill");
        let killed = kill.args(["-s", signal, &child.id().to_string()]);
        assert!(killed.status().unwrap().success());

        let acknowledged = 50 + acks.map(Result::unwrap).count();

        assert_eq!(child.wait().unwrap().code(), Some(code));
        writing.join().unwrap();
        let shown = tl.json(&["sessions"]);
        let stored = shown["sessions"][0]["head"].as_u64().unwrap();
        assert_eq!(acknowledged as u64, stored, "{signal}");
    }
}
