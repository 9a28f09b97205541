//! Crashes and concurrency with the real program.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::harness::Tl;

fn spawn_writer(tl: &Tl, id: &str) -> Child {
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
        let mut child = spawn_writer(&tl, &id);
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
            let mut child = spawn_writer(&tl, &id);
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

/// Returns the arguments that run the program without permission to start threads.
#[cfg(unix)]
fn without_threads(tl: &Tl) -> (Vec<String>, std::path::PathBuf) {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let limit = ["bash", "-c", "ulimit -u 1; exec \"$@\"", "limited"];
    let limit = limit.map(ToOwned::to_owned).to_vec();
    let program = std::path::PathBuf::from(env!("CARGO_BIN_EXE_tl"));
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() != 0) {
        return (limit, program);
    }
    // The limit does not apply to root, and another user may not have access to the
    // program.
    let copy = tl.work().join("tl");
    let copied = std::process::Command::new("cp")
        .arg(&program)
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    for path in [tl.home(), tl.work(), tl.home().parent().unwrap().to_owned()] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    for file in std::fs::read_dir(tl.home()).unwrap().flatten() {
        let mode = if file.path().is_dir() { 0o777 } else { 0o666 };
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
    }
    let who = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
    ];
    let mut words = who.map(ToOwned::to_owned).to_vec();
    words.extend(limit);
    (words, copy)
}

#[test]
#[cfg(unix)]
fn a_system_that_has_no_thread_to_give_is_an_error_and_not_a_panic() {
    let tl = Tl::new();
    let id = tl.session("s", &["one"]);
    let (words, program) = without_threads(&tl);
    for args in [
        &["append", &id, "two"][..],
        &["append", &id, "--json"],
        &["new"],
        &["sessions"],
        &["search", "one"],
        &["doctor"],
    ] {
        let mut command = std::process::Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg(&program)
            .args(args)
            .current_dir(tl.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", tl.work())
            .env("THROUGHLINE_HOME", tl.home())
            .env("TZ", "UTC");
        let line = "{\"role\":\"user\",\"content\":\"two\"}\n";
        let said = crate::harness::run_to_end(command, args, line.as_bytes());
        assert_eq!(said.code(), Some(7), "{said}");
        assert!(!said.stderr().contains("panicked"), "{said}");
        assert!(
            said.stderr().contains("thread") || said.stderr().contains("start"),
            "{said}"
        );
    }
    assert_eq!(tl.texts(&id), ["one"]);
}
