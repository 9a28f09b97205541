//! `tl doctor` on an index that disagrees with its store, on leftover files and on files
//! with unsafe permissions: exact output, and never a false "no problems found".

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use throughline::recall::{Batch, FolderIndex, Index as _, Passage, Removal};
use throughline::{Owner, Role, Seq, Timestamp};
use throughline_postgres::test_database::TestDatabase;

use crate::assert_output;
use crate::harness::{Tl, regex_escape};
use crate::server_process::ServerProcess;

/// Damages a file.
type Damage = fn(&Path);

fn tl_with_messages() -> Tl {
    let tl = Tl::new();
    tl.session("one", &["a heron", "a crane", "a stork"]);
    tl.ok(&["search", "heron"]);
    tl
}

fn index_folder(tl: &Tl) -> PathBuf {
    tl.home().join("sessions.index")
}

/// Masks the names of index files in snapshots.
fn mask_segment_names() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\b[0-9a-f]{32}\b", "[segment]");
    settings.bind_to_scope()
}

/// Returns the kinds of findings; asserts that findings make the command fail.
#[track_caller]
fn findings(tl: &Tl, args: &[&str]) -> Vec<Value> {
    let args = [args, &["doctor", "--json"]].concat();
    let said = tl.run(&args);
    let report: Value = serde_json::from_str(&said.stdout()).unwrap();
    let findings = report["findings"].as_array().unwrap().clone();
    assert_eq!(report["ok"], findings.is_empty(), "{said}");
    let code = if findings.is_empty() { 0 } else { 6 };
    assert_eq!(said.code(), Some(code), "{said}");
    for finding in &findings {
        assert!(!finding["remedy"].as_str().unwrap().is_empty(), "{said}");
    }
    findings
}

#[track_caller]
fn assert_sound(tl: &Tl) {
    assert_eq!(findings(tl, &[]), [Value::Null; 0]);
}

#[test]
fn files_that_a_kill_left_in_the_index_are_named() {
    let tl = tl_with_messages();
    assert_sound(&tl);
    let segment = fs::read_dir(index_folder(&tl).join("text")).unwrap();
    let segment = segment
        .filter_map(|file| file.unwrap().file_name().into_string().ok())
        .find_map(|name| name.strip_suffix(".term").map(ToOwned::to_owned));
    let name = format!("text/{}.99.del", segment.unwrap());
    fs::write(index_folder(&tl).join(name), b"torn").unwrap();
    fs::write(index_folder(&tl).join(".tmpABCDEF"), b"{}").unwrap();
    let _segment = mask_segment_names();
    assert_output!(
        tl,
        "doctor_leftovers_of_the_index",
        tl.run(&["doctor"]),
        tl.run(&["doctor", "--json"]),
    );
    // The next indexer removes them.
    tl.ok(&["append", "one", "an ibis"]);
    tl.ok(&["search", "ibis"]);
    assert_sound(&tl);
}

#[test]
fn a_damaged_index_is_named_and_can_be_rebuilt() {
    let damages: [(&str, Damage); 3] = [
        ("text/meta.json", |path| fs::write(path, b"{").unwrap()),
        ("text/meta.json", |path| fs::remove_file(path).unwrap()),
        ("about.json", |path| fs::write(path, b"").unwrap()),
    ];
    for (name, damage) in damages {
        let tl = tl_with_messages();
        damage(&index_folder(&tl).join(name));
        let found = findings(&tl, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["finding"], "index", "{name}");
        assert_eq!(found[0]["problem"], "damaged", "{name}");
        // Doctor only reads: nothing has changed.
        assert_eq!(findings(&tl, &[]), found);
        tl.ok(&["doctor", "--rebuild"]);
        assert_sound(&tl);
    }
}

#[test]
fn a_bit_that_was_flipped_in_a_file_of_the_index_is_found() {
    let tl = tl_with_messages();
    let files = fs::read_dir(index_folder(&tl).join("text")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "store"));
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes[3] ^= 1;
    // Same length and time: only the checksum differs.
    let written = fs::metadata(&files[0]).unwrap().modified().unwrap();
    let mut file = File::options().write(true).open(&files[0]).unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    file.set_modified(written).unwrap();
    drop(file);
    let _segment = mask_segment_names();
    assert_output!(tl, "doctor_damaged_index", tl.run(&["doctor"]));
}

#[test]
fn an_index_of_another_history_is_named() {
    let tl = Tl::new();
    tl.session("one", &["a heron"]);
    tl.ok(&["backup", "before.db"]);
    tl.session("two", &["a crane", "a stork"]);
    tl.ok(&["search", "crane"]);
    assert_sound(&tl);
    for more in [
        None,
        Some(["an egret", "an ibis", "a spoonbill", "a bittern"]),
    ] {
        let _ = fs::remove_file(tl.home().join("sessions.db-wal"));
        let _ = fs::remove_file(tl.home().join("sessions.db-shm"));
        fs::copy(tl.work().join("before.db"), tl.store()).unwrap();
        if let Some(texts) = more {
            tl.session("three", &texts);
        }
        let found = findings(&tl, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["problem"], "mismatch");
    }
    assert_output!(
        tl,
        "doctor_index_of_another_history",
        tl.run(&["doctor"]),
        tl.run(&["doctor", "--rebuild"]),
        tl.run(&["doctor"]),
    );
}

/// Changes the contents of an index behind the store's back.
fn tamper(tl: &Tl, batch: impl FnOnce(u64) -> Batch) {
    let index = FolderIndex::open(&index_folder(tl)).unwrap();
    let upto = index.watermark().unwrap();
    let batch = Batch {
        after: upto,
        upto,
        ..batch(upto)
    };
    let mut feeder = index.indexer().unwrap().unwrap();
    feeder.index_batch(batch).unwrap();
    feeder.finish().unwrap();
}

fn removal(session: &str, seq: u64) -> Removal {
    Removal {
        owner: Owner::local(),
        session: session.parse().unwrap(),
        seq: Some(Seq(seq)),
    }
}

fn passage(session: &str, seq: u64, text: &str) -> Passage {
    Passage {
        position: 1,
        owner: Owner::local(),
        session: session.parse().unwrap(),
        seq: Seq(seq),
        role: Role::User,
        author: None,
        at: Timestamp::UNIX_EPOCH,
        text: text.to_owned(),
        files: Vec::new(),
        external_id: None,
        origin: None,
    }
}

fn only_session(tl: &Tl) -> String {
    let listed = tl.json(&["sessions"]);
    listed["sessions"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_entry_that_is_not_in_the_index_is_found() {
    let tl = tl_with_messages();
    let id = only_session(&tl);
    tamper(&tl, |_| Batch {
        removed: vec![removal(&id, 2), removal(&id, 3)],
        ..Batch::default()
    });
    assert_output!(
        tl,
        "doctor_missing_passages",
        tl.run(&["doctor"]),
        tl.run(&["doctor", "--rebuild"]),
    );
    assert_sound(&tl);
}

#[test]
fn passages_of_entries_that_are_not_there_are_found_and_never_shown() {
    let tl = tl_with_messages();
    let id = only_session(&tl);
    tamper(&tl, |_| Batch {
        passages: vec![
            passage("gone", 1, "a heron of a session that is gone"),
            passage(&id, 9, "a heron beyond the end"),
        ],
        ..Batch::default()
    });
    assert_output!(tl, "doctor_orphaned_passages", tl.run(&["doctor"]));
    let found = tl.json(&["search", "heron"]);
    let hits = found["hits"].as_array().unwrap();
    assert_eq!(hits[0]["seq"], 1, "{found}");
    for hit in hits {
        assert_eq!(hit["session"], id, "{found}");
        assert_ne!(hit["seq"], 9, "{found}");
    }
    // The search that found them had the index rebuilt.
    assert_sound(&tl);
}

#[test]
fn passages_that_say_something_else_are_found_and_never_shown() {
    let tl = tl_with_messages();
    let id = only_session(&tl);
    tamper(&tl, |_| Batch {
        removed: vec![removal(&id, 2)],
        passages: vec![passage(&id, 2, "a heron that was never there")],
        ..Batch::default()
    });
    assert_output!(tl, "doctor_different_passages", tl.run(&["doctor"]));
    let said = tl.run(&["search", "heron"]);
    assert!(!said.ok().contains("never there"), "{said}");
    assert!(tl.ok(&["search", "crane"]).contains("a crane"));
    assert_sound(&tl);
}

#[test]
fn an_index_that_is_only_behind_is_well() {
    let tl = tl_with_messages();
    let id = only_session(&tl);
    tl.ok(&["append", &id, "an ibis"]);
    tl.ok(&["erase", &id, "1", "--yes"]);
    tl.session("two", &["a stork"]);
    assert_sound(&tl);
    tl.ok(&["delete", "two"]);
    tl.ok(&["purge", "--older-than", "0d"]);
    assert_sound(&tl);
    tl.ok(&["search", "ibis"]);
    assert_sound(&tl);
}

/// Sets a file's modification time back by years.
fn age(path: &Path) {
    let once = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(path).unwrap().set_modified(once).unwrap();
}

#[test]
fn leftover_files_are_named_once_nobody_can_need_them() {
    let tl = tl_with_messages();
    tl.ok(&["sessions"]);
    let gone = tl.home().join("gone.index");
    fs::create_dir_all(&gone).unwrap();
    fs::write(gone.join("about.json"), b"{}").unwrap();
    let unfinished = tl.home().join("models/.adding-x");
    fs::create_dir_all(&unfinished).unwrap();
    let files = [
        tl.home().join("copy.db.partial"),
        tl.home().join("state/.tmpABCDEF"),
        tl.home().join(".tmpABCDEF"),
    ];
    for file in &files {
        fs::write(file, b"").unwrap();
    }
    let close = std::process::Command::new("chmod")
        .args(["-R", "go="])
        .arg(tl.home())
        .status();
    assert!(close.unwrap().success());
    // Another process may be using it.
    assert_sound(&tl);
    for path in files.iter().chain([&gone, &unfinished]) {
        age(path);
    }
    assert_output!(tl, "doctor_leftovers", tl.run(&["doctor"]));
}

#[cfg(unix)]
#[test]
fn files_that_others_may_open_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let tl = tl_with_messages();
    tl.ok(&["sessions"]);
    let listing = fs::read_dir(tl.home().join("state")).unwrap().next();
    let listing = listing.unwrap().unwrap().path();
    fs::rename(&listing, listing.with_file_name("a listing")).unwrap();
    let listing = listing.with_file_name("a listing");
    fs::set_permissions(&listing, fs::Permissions::from_mode(0o644)).unwrap();
    assert_output!(
        tl,
        "doctor_permissions",
        tl.run(&["doctor"]),
        tl.run(&["doctor", "--json"]),
    );
}

#[test]
fn a_main_file_that_is_missing_or_empty_beside_its_log_is_never_well() {
    let damages: [Damage; 2] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, b"").unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let tl = Tl::new();
        let id = tl.session("one", &["a heron", "a crane"]);
        let served = ServerProcess::start(&tl).discard_stderr();
        assert_eq!(served.request("GET", "/api/sessions", None, "").0, 200);
        tl.ok(&["append", &id, "a stork"]);
        // A kill leaves committed changes in the write-ahead log.
        served.kill();
        drop(served);
        assert!(
            fs::metadata(tl.home().join("sessions.db-wal"))
                .unwrap()
                .len()
                > 0
        );
        damage(&tl.store());

        let said = tl.run(&["doctor"]);
        assert_ne!(said.code(), Some(0), "{said}");
        assert!(said.to_string().contains("--salvage"), "{said}");
        let said = tl.run(&["doctor", "--json"]);
        assert_ne!(said.code(), Some(0), "{said}");
        assert!(!said.stdout().contains("\"ok\": true"), "{said}");
        if number == 0 {
            assert_output!(tl, "doctor_main_file_lost", tl.run(&["doctor"]), said);
        }
    }
}

/// Changes a SQLite store directly, bypassing the program.
fn execute(tl: &Tl, sql: &str) {
    let store = rusqlite::Connection::open(tl.store()).unwrap();
    store.execute_batch(sql).unwrap();
}

#[test]
fn leases_are_listed_and_one_that_never_ends_is_found() {
    let tl = tl_with_messages();
    let now = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";
    let lease = |name: &str, expires: &str| {
        execute(
            &tl,
            &format!(
                "INSERT INTO lease (owner, name, holder, granted_at, expires_at)
                 VALUES ('local', '{name}', 'tl serve, process 12 on host (id)', {now}, {expires})"
            ),
        );
    };
    // A killed process does not release its lease, which is normal.
    lease("turn:one", &format!("{now} - 60000000"));
    assert_sound(&tl);
    assert_output!(tl, "doctor_expired_lease", tl.run(&["doctor"]));
    let report = tl.json(&["doctor"]);
    assert_eq!(report["leases"][0]["name"], "turn:one");
    // Acquired while the clock was set to 2100.
    lease("turn:two", "4102444800000000");
    assert_output!(tl, "doctor_lease_that_never_ends", tl.run(&["doctor"]));
}

#[test]
fn an_index_in_a_database_is_compared_as_well() {
    let Some(trial) = TestDatabase::new() else {
        return;
    };
    let tl = Tl::new();
    let url = trial.url();
    let store = ["--store", url.as_str()];
    let run = |args: &[&str]| tl.ok(&[&store[..], args].concat());
    run(&["new", "--name", "one"]);
    for text in ["a heron", "a crane", "a stork"] {
        run(&["append", "one", text]);
    }
    run(&["search", "heron"]);
    assert_eq!(findings(&tl, &store), [Value::Null; 0]);
    let problems = |expected: &[&str]| {
        let found = findings(&tl, &store);
        let problems: Vec<_> = found.iter().map(|finding| &finding["problem"]).collect();
        assert_eq!(problems, expected);
        run(&["doctor", "--rebuild"]);
        assert_eq!(findings(&tl, &store), [Value::Null; 0]);
    };
    // A hit is compared with its entry before it is shown.
    trial.execute("UPDATE throughline.passage_text SET kept = replace(kept, 'crane', 'hen')");
    let found = run(&["search", "crane"]);
    assert!(
        found.contains("a crane") && !found.contains("a hen"),
        "{found}"
    );
    assert_eq!(findings(&tl, &store), [Value::Null; 0]);

    trial.execute("DELETE FROM throughline.passage WHERE seq = 2");
    problems(&["missing"]);
    trial.execute("UPDATE throughline.passage_text SET kept = replace(kept, 'heron', 'hen')");
    problems(&["different"]);
    trial.execute("UPDATE throughline.watermark SET upto = upto + 1000");
    problems(&["mismatch"]);
}
