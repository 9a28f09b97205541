//! Everything `tl` creates is private to its owner, whatever the umask.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use throughline_postgres::test_database::TestDatabase;

use crate::harness::Tl;
use crate::models::small_model;
use crate::server_process::ServerProcess;

/// Files that this test and the harness create themselves.
const OURS: [&str; 8] = [
    "work",
    "work/small",
    "work/small/config.json",
    "work/small/model.safetensors",
    "work/small/vocab.txt",
    "work/picture.png",
    "work/input.jsonl",
    // A file for a repository, which others may read.
    "work/AGENTS.md",
];

/// Runs a wide range of commands.
fn use_everything(tl: &Tl) {
    small_model(tl);
    fs::write(tl.work().join("picture.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let id = tl.session("auth", &["We keep tokens in Redis.", "On port 6380."]);
    tl.ok(&["append", &id, "look", "--attach", "picture.png"]);
    tl.ok(&["sessions"]);
    tl.ok(&["search", "redis"]);
    tl.ok(&["models", "add", "minilm", "--from", "small"]);
    tl.ok(&["search", "redis port"]);
    tl.ok(&["pin", &id, "The port is 6380."]);
    tl.ok(&["compact", &id]);
    tl.ok(&["memory", "add", "Redis listens on 6380."]);
    tl.ok(&["memory", "export", "--output", "AGENTS.md"]);
    tl.ok(&["--resume", &id, "-p", "Which port?"]);
    let transcripts = tl.home().join("transcripts");
    let mut chat = tl.command(&["--resume", &id]);
    chat.env("TL_TRANSCRIPTS", transcripts);
    crate::harness::run_to_end(chat, &["chat"], b"Which port?\n/exit\n").ok();
    let fork = tl.ok(&["fork", &id]).trim().to_owned();
    tl.ok(&["append", &fork, "on a fork"]);
    tl.ok(&["merge", &fork]);
    tl.ok(&["delete", &fork]);
    tl.ok(&["purge", "--older-than", "0d"]);
    tl.ok(&["erase", &id, "1", "--yes"]);
    tl.ok(&["search", "port"]);
    for output in ["a.md", "a.json", "a.jsonl", "a.html"] {
        tl.ok(&["export", &id, "--output", output]);
    }
    tl.ok(&[
        "export",
        &id,
        "--format",
        "aiarmy",
        "--output",
        "new/aiarmy",
    ]);
    tl.ok(&["export", &id, "--attachments", "new/attachments"]);
    tl.ok(&["--store", "sqlite:new/imported/b.db", "import", "a.jsonl"]);
    let line = br#"{"role":"user","content":"by line"}"#;
    tl.run_with(&["append", &id, "--json"], line).ok();
    for agent in ["claude-code", "codex", "pi", "gemini"] {
        tl.ok(&["handoff", &id, "--to", agent, "--write"]);
    }
    tl.ok(&["backup", "backup.db"]);
    tl.ok(&["doctor"]);
    tl.ok(&["doctor", "--rebuild"]);
    tl.ok(&["doctor", "--salvage", "new/salvaged/s.db"]);
    let store = format!("sqlite:{}", tl.store().display());
    tl.ok(&["migrate-store", &store, "sqlite:new/migrated/m.db"]);
    tl.ok(&["config"]);
    tl.ok(&["stats"]);
    serve(tl, &id);
}

/// Uses the store through a server with uploads, and through a client with an index of its
/// own.
fn serve(tl: &Tl, id: &str) {
    let token = tl.json(&["token", "create", "--user", "local", "--role", "admin"]);
    let token = token["token"].as_str().unwrap();
    let served = ServerProcess::start(tl).discard_stderr();
    let upload = "x".repeat(3_000_000);
    let asked = served.request("POST", "/api/blobs", Some(token), &upload);
    assert_eq!(asked.0, 201, "{}", asked.1);
    let turn = r#"{"message": "Which port?", "stream": false}"#;
    let asked = served.request(
        "POST",
        &format!("/api/sessions/{id}/turns"),
        Some(token),
        turn,
    );
    assert_eq!(asked.0, 200, "{}", asked.1);
    let url = format!("http://{}", served.address);
    tl.run_with(&["login", &url], format!("{token}\n").as_bytes())
        .ok();
    let found = tl.ok(&["--store", &url, "search", "port"]);
    assert!(found.contains("port"), "{found}");
    // While the server runs, and its side files exist.
    assert!(tl.home().join("sessions.db-wal").exists());
    assert_eq!(tl.files_open_to_others(&OURS), [""; 0]);
    drop(served);
}

#[test]
fn everything_created_is_for_its_owner_only() {
    for umask in ["022", "000"] {
        let tl = Tl::with_umask(umask);
        use_everything(&tl);
        assert_eq!(tl.files_open_to_others(&OURS), [""; 0], "umask {umask}");
        assert!(tl.home().join("models/minilm").is_dir());
        assert!(tl.home().join("transcripts").is_dir());
        assert!(tl.home().join("cache").is_dir());
    }
}

#[test]
fn what_a_database_needs_on_this_machine_is_for_its_owner_only() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let tl = Tl::with_umask("000");
    small_model(&tl);
    let url = trial.url();
    let ok = |args: &[&str]| {
        let args: Vec<_> = ["--store", &url].iter().chain(args).copied().collect();
        tl.ok(&args)
    };
    let id = ok(&["new", "--name", "auth"]).trim().to_owned();
    ok(&["append", &id, "We keep tokens in Redis."]);
    tl.ok(&["models", "add", "minilm", "--from", "small"]);
    ok(&["search", "where are tokens"]);
    assert!(tl.home().join("cache").is_dir());
    assert_eq!(tl.files_open_to_others(&OURS), [""; 0]);
}

/// Makes everything under a folder readable by everyone, as earlier versions did.
fn open_to_everybody(folder: &Path) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            open_to_everybody(&path);
        } else {
            fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        }
    }
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_earlier_versions_created_is_restricted_when_it_is_opened() {
    let tl = Tl::with_umask("022");
    small_model(&tl);
    tl.session("auth", &["We keep tokens in Redis."]);
    tl.ok(&["models", "add", "minilm", "--from", "small"]);
    tl.ok(&["search", "where are tokens"]);
    let served = ServerProcess::start(&tl).discard_stderr();
    served.request("GET", "/api/sessions", None, "");
    open_to_everybody(&tl.home());
    assert!(tl.files_open_to_others(&OURS).len() > 10);

    tl.ok(&["sessions"]);

    assert_eq!(tl.files_open_to_others(&OURS), [""; 0]);
    drop(served);
}

#[test]
fn a_folder_that_is_not_ours_stays_as_it_is() {
    let tl = Tl::with_umask("022");
    let folder = tl.work().join("project");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("notes.txt"), "for everybody").unwrap();
    let store = ["--store", "sqlite:project/s.db"];
    let run = |args: &[&str]| tl.ok(&[&store[..], args].concat());
    run(&["new", "--name", "auth"]);
    run(&["search", "anything"]);
    fs::set_permissions(folder.join("s.db"), Permissions::from_mode(0o644)).unwrap();
    run(&["sessions"]);

    let mut ours = OURS.to_vec();
    ours.extend(["work/project", "work/project/notes.txt"]);
    assert_eq!(tl.files_open_to_others(&ours), [""; 0]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o755);
    assert_ne!(mode(&folder.join("notes.txt")) & 0o004, 0);
}
