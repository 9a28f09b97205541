//! Commands that wait for another process say so.

use std::time::Duration;

use throughline::{SessionId, Throughline};

use crate::harness::Tl;

/// Another process that does some work, and dies.
fn somebody_else_does(tl: &Tl, work: &str) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.build().unwrap();
    runtime.block_on(async {
        let url = format!("sqlite:{}", tl.store().display());
        let other = Throughline::open(&url).await.unwrap();
        let holder = "tl serve, process 12 on elsewhere (dead)";
        let term = Duration::from_secs(3);
        let lease = other.store().take_lease(other.owner(), work, holder, term);
        lease.await.unwrap();
        other.close().await.unwrap();
    });
}

#[test]
fn a_question_says_whose_answer_it_waits_for() {
    let tl = Tl::new();
    let id = tl.session("talk", &["Hello"]);
    somebody_else_does(&tl, &format!("turn in {id}"));

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
    somebody_else_does(&tl, &format!("compact {id}"));

    let said = tl.run(&["compact", id.as_str()]);

    said.ok();
    let waits = format!("process 12 on elsewhere, which is summarizing session {id}");
    assert!(said.stderr().contains(&waits), "{}", said.stderr());
}
