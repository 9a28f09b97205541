//! Commands that wait for another process print a note.

use std::time::Duration;

use throughline::SessionId;

use crate::harness::Tl;

/// How long the other process holds its lease.
const LEASE_TERM: Duration = Duration::from_secs(3);

#[test]
fn a_question_says_whose_answer_it_waits_for() {
    let tl = Tl::new();
    let id = tl.session("talk", &["Hello"]);
    tl.hold_lease_elsewhere(&format!("turn in {id}"), LEASE_TERM);

    let said = tl.run(&["-p", "And now?", "--resume", &id]);

    assert!(!said.ok().is_empty());
    let waits = format!(
        "Waiting for tl serve, process 12 on elsewhere, which is answering in session {id}. \
         If that process has died, this continues at "
    );
    assert!(said.stderr().contains(&waits), "{}", said.stderr());
}

#[test]
fn a_compaction_says_whose_it_waits_for() {
    let tl = Tl::new();
    let texts: Vec<String> = (0..30)
        .map(|n| format!("We decided to keep {n} retries in src/part_{n}.rs, and to test it."))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let id = tl.session("talk", &texts);
    let id: SessionId = id.parse().unwrap();
    tl.hold_lease_elsewhere(&format!("compact {id}"), LEASE_TERM);

    let said = tl.run(&["compact", id.as_str()]);

    said.ok();
    let waits = format!("process 12 on elsewhere, which is summarizing session {id}");
    assert!(said.stderr().contains(&waits), "{}", said.stderr());
}
