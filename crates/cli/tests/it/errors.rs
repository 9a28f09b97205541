//! What is said when something cannot be done.

use crate::assert_said;
use crate::harness::{Tl, regex_escape};

#[test]
fn errors_name_the_thing_and_what_to_do() {
    let tl = Tl::new();
    assert_said!(
        tl,
        "errors_empty",
        tl.run(&["show"]),
        tl.run(&["show", "auth"]),
        tl.run(&["show", "3"])
    );
    let id = tl.session("auth", &["x"]);
    tl.session("auth", &["y"]);
    assert_said!(
        tl,
        "errors",
        tl.run(&["show", "auth"]),
        tl.run(&["show", "7"]),
        tl.run(&["show", "missing.md"]),
        tl.run(&["rename", &id, "index"]),
        tl.run(&["rename", &id, "../../etc/passwd"]),
        tl.run(&["new", "--id", "a/b"]),
        tl.run(&["new", "--id", &id]),
        tl.run(&["fork", &id, "--at", "99"]),
        tl.run(&["unpin", &id, "nothing"]),
        tl.run(&["sessions", "--cursor", "nonsense"]),
        tl.run(&["sessions", "--since", "whenever"]),
        tl.run(&["sessions", "--project", "nowhere"]),
        tl.run(&["append", &id, "x", "--expect", "5"]),
        tl.run(&["append", &id, "x", "--role", "wizard"]),
        tl.run(&["import", "missing.jsonl"]),
        tl.run(&["--store", "mysql://x", "sessions"]),
        tl.run(&["frobnicate"]),
    );
}

#[test]
fn help_is_there_for_every_command() {
    let tl = Tl::new();
    let help = tl.run(&["--help"]);
    let commands: Vec<_> = help
        .stdout()
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next().map(ToOwned::to_owned))
        .filter(|command| command != "help")
        .collect();
    assert!(commands.len() >= 29, "{commands:?}");
    for command in &commands {
        let said = tl.run(&[command, "--help"]).ok();
        assert!(said.contains("Usage: tl"), "{command}");
    }
    assert_said!(tl, "help", help);
}

#[test]
fn output_that_nobody_reads_to_the_end_is_no_error() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let lines: String = (0..5_000)
        .map(|n| format!("{{\"role\":\"user\",\"content\":\"message {n}\"}}\n"))
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    let mut child = tl
        .command(&["show", &id, "--all"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
