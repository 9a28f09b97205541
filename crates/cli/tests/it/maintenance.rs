//! Doctor, salvage and backup.

use std::process::Stdio;

use crate::assert_output;
use crate::harness::{Tl, regex_escape};
use crate::server_process::ServerProcess;

#[test]
fn a_damaged_store_is_diagnosed_and_salvaged() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let lines: String = (0..500)
        .map(|n| {
            format!(
                "{{\"role\":\"user\",\"content\":\"message {n} {}\"}}\n",
                "x".repeat(300)
            )
        })
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    tl.ok(&["backup", "whole.db"]);
    let mut bytes = std::fs::read(tl.work().join("whole.db")).unwrap();
    let middle = bytes
        .windows(12)
        .position(|w| w == b"message 250 ")
        .unwrap();
    let page = middle / 4096 * 4096;
    bytes[page..page + 4096].fill(0xa5);
    std::fs::write(tl.work().join("damaged.db"), &bytes).unwrap();

    let report = tl.run(&["--store", "sqlite:damaged.db", "doctor", "--json"]);
    assert_eq!(report.code(), Some(6));
    let report: serde_json::Value = serde_json::from_str(&report.stdout()).unwrap();
    assert_eq!(report["ok"], false);

    let salvaged = tl.run(&[
        "--store",
        "sqlite:damaged.db",
        "doctor",
        "--salvage",
        "saved.db",
    ]);
    assert_eq!(salvaged.code(), Some(6), "{salvaged}");
    assert!(
        salvaged.stdout().starts_with("lost: entries 2"),
        "{salvaged}"
    );
    let sound: serde_json::Value =
        serde_json::from_str(&tl.ok(&["--store", "sqlite:saved.db", "doctor", "--json"])).unwrap();
    assert_eq!(sound["ok"], true);
    let saved = tl.ok(&["--store", "sqlite:saved.db", "show", &id, "--all", "--json"]);
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let entries = saved["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 500);
    let kept = entries
        .iter()
        .filter(|entry| entry["kind"] == "message")
        .count();
    assert!((480..500).contains(&kept), "{kept} kept");
    assert_eq!(entries[499]["seq"], 500);
}

#[test]
fn a_sound_store_is_said_to_be_sound() {
    let tl = Tl::new();
    tl.session("s", &["one"]);
    assert_output!(
        tl,
        "doctor",
        tl.run(&["doctor"]),
        tl.run(&["doctor", "--rebuild"]),
        tl.run(&["doctor", "--json"]),
    );
}

#[test]
fn a_backup_is_whole_while_others_write() {
    let tl = Tl::new();
    let id = tl.session("s", &["first"]);
    let mut writer = tl
        .command(&["append", &id, "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        for n in 0..3_000 {
            let line = format!("{{\"role\":\"user\",\"content\":\"{n}\"}}\n");
            std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        }
    });
    for n in 0..3 {
        let file = format!("copy{n}.db");
        tl.ok(&["backup", &file]);
        let store = format!("sqlite:{file}");
        let doctor = tl.ok(&["--store", &store, "doctor", "--json"]);
        assert!(doctor.contains("\"ok\": true"));
    }
    feeding.join().unwrap();
    assert!(writer.wait().unwrap().success());
    assert_eq!(tl.run(&["backup", "copy0.db"]).code(), Some(5));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(tl.work().join("copy0.db"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_that_cannot_be_opened_still_gets_a_report() {
    let tl = Tl::new();
    tl.session("s", &["one"]);
    tl.ok(&["backup", "b.db"]);
    let mut bytes = std::fs::read(tl.work().join("b.db")).unwrap();
    bytes[..4096].fill(0x5a);
    std::fs::write(tl.work().join("b.db"), bytes).unwrap();
    let said = tl.run(&["--store", "sqlite:b.db", "doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.stdout()).unwrap();
    assert_eq!((said.code(), &report["ok"]), (Some(6), &false.into()));
}

/// Leaves a store as a crash can leave it: a write-ahead log without a main file.
fn lose_the_main_file(tl: &Tl) -> Vec<u8> {
    let log = tl.home().join("sessions.db-wal");
    let bytes = std::fs::read(&log).unwrap();
    for name in ["sessions.db", "sessions.db-shm"] {
        std::fs::remove_file(tl.home().join(name)).unwrap();
    }
    std::fs::write(&log, &bytes).unwrap();
    bytes
}

#[test]
fn a_lost_main_file_is_diagnosed_and_its_log_is_salvaged() {
    let tl = Tl::new();
    let id = tl.session("s", &["one"]);
    // While another process has the store open, committed changes stay in the write-ahead
    // log.
    let open = rusqlite::Connection::open(tl.store()).unwrap();
    let count = "SELECT count(*) FROM entry";
    let entries: i64 = open.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(entries, 1);
    open.execute_batch("VACUUM").unwrap();
    tl.ok(&["append", &id, "two"]);
    let log = lose_the_main_file(&tl);

    let store = format!("sqlite:{}", tl.store().display());
    for args in [
        &["doctor", "--json"][..],
        &["--store", &store, "doctor", "--json"],
    ] {
        let said = tl.run(args);
        assert_eq!(said.code(), Some(6), "{said}");
        let report: serde_json::Value = serde_json::from_str(&said.stdout()).unwrap();
        assert_eq!(report["ok"], false);
        assert_eq!(report["findings"][0]["finding"], "file");
    }
    for args in [&["new"][..], &["append", &id, "three"], &["sessions"]] {
        let said = tl.run(args);
        assert_eq!(said.code(), Some(6), "{said}");
        assert!(said.stderr().contains("tl doctor --salvage"), "{said}");
    }
    assert!(!tl.store().exists());
    assert!(std::fs::read(tl.home().join("sessions.db-wal")).unwrap() == log);

    tl.ok(&["doctor", "--salvage", "saved.db"]);
    let saved = tl.ok(&["--store", "sqlite:saved.db", "show", &id, "--all", "--json"]);
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let texts: Vec<_> = saved["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["one", "two"]);
    drop(open);
}

#[test]
fn a_backup_is_restored_while_a_server_runs() {
    let tl = Tl::new();
    let served = ServerProcess::start(&tl).discard_stderr();
    let address = format!("http://{}", served.address);
    let remote = |args: &[&str]| tl.ok(&[&["--store", &address], args].concat());
    let found = |word: &str| {
        let (status, page) = served.request("GET", &format!("/api/search?q={word}"), None, "");
        assert_eq!(status, 200, "{page}");
        let hits = page["hits"].as_array().unwrap().iter();
        hits.filter(|hit| hit["snippet"].as_str().unwrap().contains(word))
            .count()
    };
    let id = remote(&["new", "--name", "s"]).trim().to_owned();
    remote(&["append", &id, "alpha"]);
    tl.ok(&["backup", "copy.db"]);
    remote(&["append", &id, "beta"]);
    remote(&["append", &id, "beta again"]);
    assert_eq!((found("alpha"), found("beta")), (1, 2));

    let restored = tl.json(&["restore-backup", "copy.db"]);

    assert_eq!(restored["in_place"], true, "{restored}");
    assert_eq!(
        (&restored["sessions"], &restored["entries"]),
        (&1.into(), &1.into())
    );
    remote(&["append", &id, "gamma"]);
    assert_eq!(tl.texts(&id), ["alpha", "gamma"]);
    assert_eq!((found("alpha"), found("beta"), found("gamma")), (1, 0, 1));
    let kept = format!("sqlite:{}", restored["replaced"].as_str().unwrap());
    let before = tl.ok(&["--store", &kept, "show", &id, "--all"]);
    assert!(before.contains("beta again"), "{before}");
    assert_eq!(tl.json(&["doctor"])["ok"], true);

    // A file that is not a backup is refused, and nothing changes.
    std::fs::write(tl.work().join("text"), "x".repeat(10_000)).unwrap();
    assert_eq!(tl.run(&["restore-backup", "text"]).code(), Some(6));
    assert_eq!(tl.run(&["restore-backup", "nowhere"]).code(), Some(3));
    let other = Tl::new();
    other.session("other", &["hello"]);
    let copy = tl.work().join("other.db");
    let copy = copy.to_str().unwrap();
    other.ok(&["backup", copy]);
    assert_eq!(tl.run(&["restore-backup", copy]).code(), Some(4));
    assert_eq!(tl.texts(&id), ["alpha", "gamma"]);
}
