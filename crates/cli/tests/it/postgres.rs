//! `tl` on a PostgreSQL store: every command behaves as on a file.

use serde_json::Value;
use throughline_cluster::{Cluster, PostgresBinaries};
use throughline_postgres::test_database::TestDatabase;

use crate::harness::{CommandOutput, Tl};
use crate::server_process::ServerProcess;

/// A `tl` whose store is in a database.
struct PostgresTl {
    tl: Tl,
    url: String,
}

impl PostgresTl {
    fn new(trial: &TestDatabase) -> Self {
        let url = trial.url();
        Self { tl: Tl::new(), url }
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let args: Vec<_> = ["--store", &self.url].iter().chain(args).copied().collect();
        self.tl.run(&args)
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        self.run(args).ok()
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&args)).unwrap()
    }

    fn texts(&self, session: &str) -> Vec<String> {
        let shown = self.json(&["show", session, "--all"]);
        let entries = shown["entries"].as_array().unwrap();
        let contents = entries.iter().filter_map(|entry| entry["content"].as_str());
        contents.map(ToOwned::to_owned).collect()
    }
}

#[test]
fn a_session_lives_its_life_in_a_database() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let far = PostgresTl::new(&trial);
    let id = far.ok(&["new", "--name", "auth"]).trim().to_owned();
    far.ok(&["append", "auth", "Where do sessions live?"]);
    far.ok(&[
        "append",
        "auth",
        "--role",
        "assistant",
        "In PostgreSQL now.",
    ]);
    far.ok(&["tag", "auth", "storage"]);
    far.ok(&["pin", "auth", "The database is called bluebird."]);
    far.ok(&["rename", "auth", "sign-in"]);

    let listed = far.json(&["sessions", "--tag", "storage"]);
    assert_eq!(listed["sessions"][0]["name"], "sign-in");
    far.ok(&["sessions"]);
    assert_eq!(far.texts("1")[0], "Where do sessions live?");
    let context = far.ok(&["context", "sign-in", "--json"]);
    assert!(context.contains("bluebird"), "{context}");
    let stats = far.json(&["stats"]);
    assert_eq!(stats["sessions"], 1, "{stats}");

    let found = far.json(&["search", "bluebird"]);
    assert!(found.to_string().contains(&id), "{found}");

    let fork = far.ok(&["fork", "sign-in"]).trim().to_owned();
    far.ok(&["append", &fork, "What if it were a file?"]);
    far.ok(&["merge", &fork]);
    assert!(
        far.texts(&id)
            .contains(&"What if it were a file?".to_owned())
    );

    far.ok(&["erase", &id, "1", "--yes"]);
    assert!(
        !far.texts(&id)
            .contains(&"Where do sessions live?".to_owned())
    );
    far.ok(&["delete", &fork]);
    far.ok(&["restore", &fork]);
    far.ok(&["archive", &fork]);
    let report = far.json(&["doctor"]);
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["findings"], serde_json::json!([]));
    let rebuilt = far.json(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt["ok"], true, "{rebuilt}");
}

#[test]
fn sessions_move_between_a_file_and_a_database_whole() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let far = PostgresTl::new(&trial);
    let id = far.tl.session("notes", &["one", "two"]);
    let here = far.tl.ok(&["export", &id, "--format", "jsonl"]);
    let file = far.tl.work().join("notes.jsonl");
    std::fs::write(&file, &here).unwrap();

    far.ok(&["import", "notes.jsonl"]);

    assert_eq!(far.ok(&["export", &id, "--format", "jsonl"]), here);
}

#[test]
fn what_one_machine_writes_another_finds() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let (one, other) = (PostgresTl::new(&trial), PostgresTl::new(&trial));
    one.ok(&["new", "--name", "shared"]);
    one.ok(&["append", "shared", "The heron stands in the reeds."]);
    let found = other.json(&["search", "heron"]);
    assert!(found.to_string().contains("reeds"), "{found}");
    one.ok(&["append", "shared", "The heron has flown."]);
    let found = other.json(&["search", "heron flown"]);
    assert!(found.to_string().contains("flown"), "{found}");
}

#[test]
fn a_password_is_not_shown_and_a_project_cannot_send_sessions_away() {
    let tl = Tl::new();
    let away = "postgres://me:hunter2@127.0.0.1:1/db";
    let said = tl.run(&["--store", away, "sessions"]);
    assert_eq!(said.code(), Some(7), "{said}");
    let shown = tl.ok(&["--store", away, "config"]);
    assert!(shown.contains("postgres://me@127.0.0.1:1/db"), "{shown}");
    for text in [said.stderr(), shown] {
        assert!(!text.contains("hunter2"), "{text}");
    }

    let folder = tl.work().join(".throughline");
    std::fs::create_dir(&folder).unwrap();
    let config = "store = \"postgres://elsewhere/db\"\n";
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let refused = tl.run(&["sessions"]);
    assert_ne!(refused.code(), Some(0));
    assert!(refused.stderr().contains("a project's store"), "{refused}");
}

#[test]
fn a_server_waits_for_a_database_that_is_down_and_is_not_ready_until_then() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let mut cluster = Cluster::start(&programs, &["fsync=off"]).unwrap();
    let url = cluster.url();
    cluster.stop_immediately().unwrap();
    let tl = Tl::new();

    let served = ServerProcess::start_command(tl.command(&["--store", &url]));

    let ask = |path| served.request("GET", path, None, "");
    assert_eq!(ask("/health").0, 200);
    for path in ["/ready", "/api/sessions", "/v1/conversations", "/"] {
        let (status, problem) = ask(path);
        assert_eq!(status, 503, "{path}: {problem}");
        assert_eq!(problem["code"], "unavailable", "{path}: {problem}");
        assert_eq!(problem["retry_after"], 1, "{path}: {problem}");
    }
    cluster.ensure_running().unwrap();
    let mut status = 503;
    // The test runner ends a test that takes too long.
    while status != 200 {
        assert_eq!(status, 503);
        std::thread::sleep(std::time::Duration::from_millis(50));
        status = ask("/ready").0;
    }
    assert_eq!(ask("/api/sessions").0, 200);
    let (said, well) = served.stop();
    assert!(well, "{said}");
    assert!(said.contains("waiting for the database"), "{said}");
}

#[test]
fn a_server_does_not_wait_for_what_waiting_cannot_heal() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let cluster = Cluster::start(&programs, &["fsync=off"]).unwrap();
    let tl = Tl::new();
    let host = cluster.host();
    for url in [
        format!("postgres://postgres@{host}/no_such_database"),
        format!("postgres://nobody@{host}/postgres"),
        format!("postgres://postgres@{host}/postgres?sslmode=perhaps"),
        "postgres:nothing".to_owned(),
    ] {
        let said = tl.run(&["--store", &url, "serve", "--listen", "127.0.0.1:0"]);
        assert_ne!(said.code(), Some(0), "{url}: {said:?}");
        assert!(said.stdout().is_empty(), "{url}: {said:?}");
    }
}
