//! Crashes and crowds, with the real program.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::harness::Tl;

fn writer(tl: &Tl, id: &str) -> Child {
    tl.command(&["append", id, "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn whatever_was_acknowledged_survives_a_kill() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let mut acknowledged = 0_u64;
    for round in 0..15_u64 {
        let mut child = writer(&tl, &id);
        let mut stdin = child.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || {
            for n in 0.. {
                let line = format!("{{\"role\":\"user\",\"content\":\"{round} {n}\"}}\n");
                // Until the reader is killed.
                if stdin.write_all(line.as_bytes()).is_err() {
                    break;
                }
            }
        });
        let acks = BufReader::new(child.stdout.take().unwrap()).lines();
        let enough = 1 + (round * 37) % 400;
        for (count, ack) in acks.enumerate() {
            let Ok(ack) = serde_json::from_str::<Value>(&ack.unwrap()) else {
                // Cut off in the middle of a line: not an acknowledgement.
                continue;
            };
            let seq = ack["seq"].as_u64().unwrap();
            assert!(seq > acknowledged, "numbers only grow");
            acknowledged = seq;
            if count as u64 == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        feeding.join().unwrap();
        let shown = tl.json(&["show", &id, "--last", "1"]);
        assert!(shown["session"]["head"].as_u64().unwrap() >= acknowledged);
    }
    let report = tl.json(&["doctor"]);
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn eight_processes_share_a_session_and_lose_nothing() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let mut child = writer(&tl, &id);
            let mut stdin = child.stdin.take().unwrap();
            for m in 0..100 {
                writeln!(stdin, r#"{{"role":"user","content":"{n} {m}"}}"#).unwrap();
            }
            child
        })
        .collect();
    let mut seqs = Vec::new();
    for child in writers {
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let ack: Value = serde_json::from_str(line).unwrap();
            seqs.push(ack["seq"].as_u64().unwrap());
        }
    }
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=800).collect::<Vec<_>>());
    let mut texts = tl.texts(&id);
    for n in 0..8 {
        let own: Vec<_> = texts
            .iter()
            .filter(|t| t.starts_with(&format!("{n} ")))
            .cloned()
            .collect();
        let expected: Vec<_> = (0..100).map(|m| format!("{n} {m}")).collect();
        assert_eq!(own, expected, "each writer's lines are in its order");
    }
    texts.dedup();
    assert_eq!(texts.len(), 800);
    assert_eq!(tl.json(&["doctor"])["ok"], true);
}

#[test]
fn a_store_that_many_make_at_once_is_made_for_all_of_them() {
    for _ in 0..10 {
        let tl = Tl::new();
        let starting: Vec<_> = (0..8)
            .map(|_| {
                let mut command = tl.command(&["new"]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        for child in starting {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
        }
        assert_eq!(
            tl.json(&["sessions"])["sessions"].as_array().unwrap().len(),
            8
        );
    }
}
