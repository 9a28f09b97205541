//! Error messages for commands that cannot be carried out.

use crate::assert_output;
use crate::harness::{Tl, regex_escape};

#[test]
fn errors_name_the_thing_and_what_to_do() {
    let tl = Tl::new();
    assert_output!(
        tl,
        "errors_empty",
        tl.run(&["show"]),
        tl.run(&["show", "auth"]),
        tl.run(&["show", "3"])
    );
    let id = tl.session("auth", &["x"]);
    tl.session("auth", &["y"]);
    assert_output!(
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
    assert_output!(tl, "help", help);
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

#[test]
fn nothing_typed_names_nothing() {
    let tl = Tl::new();
    tl.session("only", &["x"]);
    for spec in ["", " "] {
        for command in ["delete", "append", "show", "restore"] {
            assert_ne!(
                tl.run(&[command, spec]).code(),
                Some(0),
                "{command} {spec:?}"
            );
        }
    }
    assert_eq!(tl.texts("only"), ["x"]);
}

#[test]
fn a_mistyped_flag_is_not_taken_for_the_message() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    assert_eq!(tl.run(&["append", &id, "--typo"]).code(), Some(2));
    tl.ok(&["append", &id, "--", "--not-a-flag"]);
    assert_eq!(tl.texts(&id), ["--not-a-flag"]);
    let line = br#"{"role":"user","content":"x"}"#;
    let refused = tl.run_with(&["append", &id, "--json", "--author", "bob"], line);
    assert_eq!(refused.code(), Some(5));
}

#[test]
fn a_store_that_was_misspelt_is_not_made_by_looking_at_it() {
    let tl = Tl::new();
    for command in ["sessions", "doctor", "stats", "show"] {
        let said = tl.run(&["--store", "sqlite:typo.db", command]);
        assert_eq!(said.code(), Some(3), "{said}");
    }
    assert!(!tl.work().join("typo.db").exists());
    tl.ok(&["--store", "sqlite:typo.db", "new"]);
    assert!(tl.work().join("typo.db").exists());
}

#[test]
fn a_file_that_may_not_grow_is_an_error_that_says_so() {
    let tl = Tl::new();
    let id = tl.session("s", &["before"]);
    let script = format!(
        "ulimit -f 300; exec {} append {id}",
        env!("CARGO_BIN_EXE_tl")
    );
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", &script])
        .current_dir(tl.work())
        .env("THROUGHLINE_HOME", tl.home());
    let said = crate::harness::run_to_end(command, &["append"], &vec![b'x'; 2_000_000]);
    assert_eq!(said.code(), Some(7), "{said}");
    assert_eq!(tl.texts(&id), ["before"]);
    assert_eq!(tl.json(&["doctor"])["ok"], true);
}

#[test]
fn a_malformed_address_of_a_server_is_refused_and_not_tried() {
    let tl = Tl::new();
    for url in [
        "https:tl.example.org",
        "https:/tl.example.org",
        "https:///tl.example.org",
        "https://{host}",
        "https://tl.example.org:port",
    ] {
        let said = tl.run(&["--store", url, "sessions"]);
        assert_eq!(said.code(), Some(5), "{url}: {said:?}");
        let told = said.stderr();
        assert!(told.contains("is not a valid store address"), "{told}");
    }
}
