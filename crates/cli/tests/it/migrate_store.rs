//! `tl migrate-store`: copies a whole store to a database and back.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_postgres::test_database::TestDatabase;

use crate::harness::{CommandOutput, Tl};

const LINES: usize = 300;

/// Copies one store into another; returns the exact output.
#[track_caller]
fn migrate(tl: &Tl, from: &str, to: &str) -> String {
    let said = tl.run(&["migrate-store", from, to]);
    assert_eq!(
        (said.code(), said.stdout()),
        (Some(0), String::new()),
        "{said}"
    );
    said.stderr()
}

#[test]
fn a_store_goes_to_a_database_and_comes_back_the_same() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let tl = Tl::new();
    let far = trial.url();
    let id = tl.session("auth", &["one", "two", "three"]);
    tl.ok(&["fork", "auth", "--at", "2", "--name", "idea"]);
    tl.ok(&["append", "idea", "another three"]);
    let old = tl.session("old", &["gone"]);
    tl.ok(&["delete", &old]);
    let here = format!("sqlite:{}", tl.store().display());

    assert_eq!(
        migrate(&tl, &here, &far),
        "3 sessions of 1 owner, 7 entries identical in both; 5 copied now\n"
    );
    assert_eq!(
        migrate(&tl, &here, &far),
        "3 sessions of 1 owner, 7 entries identical in both; 0 copied now\n"
    );
    tl.ok(&["append", "auth", "four"]);
    assert_eq!(
        migrate(&tl, &here, &far),
        "3 sessions of 1 owner, 8 entries identical in both; 1 copied now\n"
    );
    assert_eq!(
        migrate(&tl, &far, "sqlite:back.db"),
        "3 sessions of 1 owner, 8 entries identical in both; 6 copied now\n"
    );
    let report = tl.json(&["migrate-store", &here, "sqlite:back.db"]);
    let expected = json!({
        "ok": true, "owners": 1, "sessions": 3, "entries": 8, "copied": 0, "tokens": 0,
        "blobs": 0, "missing_blobs": 0, "differing": [], "only_there": [],
    });
    assert_eq!(report, expected);
    let exported = |store: &str| tl.ok(&["--store", store, "export", &id, "--format", "jsonl"]);
    assert_eq!(exported("sqlite:back.db"), exported(&here));
}

#[test]
fn what_is_no_store_is_not_copied() {
    let tl = Tl::new();
    let refused = |from: &str, to: &str| -> CommandOutput {
        let said = tl.run(&["migrate-store", from, to]);
        assert_ne!(said.code(), Some(0), "{said}");
        said
    };
    let missing = refused("sqlite:missing.db", "sqlite:there.db");
    assert_eq!(missing.code(), Some(3));
    assert_eq!(missing.stderr(), "error: there is no store at missing.db\n");
    assert!(!tl.work().join("there.db").exists());
    let same = refused("sqlite:a.db", "sqlite:a.db");
    assert!(same.stderr().contains("both are the same store"), "{same}");
    refused("nothing", "sqlite:b.db");
}

/// Counts the entries in a database.
async fn count_entries(trial: &TestDatabase) -> i64 {
    let row = trial
        .connect()
        .await
        .query_one("SELECT count(*) FROM throughline.entry", &[])
        .await;
    row.unwrap().get(0)
}

#[test]
fn a_copy_that_was_killed_is_gone_on_with() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let tl = Tl::new();
    let lines: String = (0..LINES)
        .map(|n| {
            let content = format!("message {n} {}", "x".repeat(2_000));
            json!({"role": "user", "content": content}).to_string() + "\n"
        })
        .collect();
    let sessions = 12;
    for number in 0..sessions {
        let id = tl.session(&format!("s-{number}"), &[]);
        let appended = tl.run_with(&["append", &id, "--json"], lines.as_bytes());
        appended.ok();
    }
    let total = i64::try_from(sessions * LINES).unwrap();
    let (here, far) = (format!("sqlite:{}", tl.store().display()), trial.url());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();

    let mut copying = tl
        .command(&["migrate-store", &here, &far])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while runtime.block_on(count_entries(&trial)) == 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    copying.kill().unwrap();
    copying.wait().unwrap();

    let there = runtime.block_on(count_entries(&trial));
    assert!((1..total).contains(&there), "{there} were there already");
    let report: Value = tl.json(&["migrate-store", &here, &far]);
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["entries"], total, "{report}");
    assert_eq!(report["copied"], total - there, "{report}");
    let again =
        format!("{sessions} sessions of 1 owner, 3,600 entries identical in both; 0 copied now\n");
    assert_eq!(migrate(&tl, &here, &far), again);
}
