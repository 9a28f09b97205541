//! Compatibility tests: stores, exports, indexes and output of released versions, read by
//! the current `tl`.
//!
//! `tests/compatibility/VERSION/` holds what that version recorded with `record.sh`.
//! Recordings are never changed; if one of these tests fails, the program is no longer
//! compatible.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use throughline::Throughline;

use crate::harness::Tl;

/// Where the sources were when they were imported for the recordings.
const RECORDED_SOURCES: &str = "/tmp/throughline-recording/sources";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compatibility")
}

/// The folders of all recorded versions.
pub(crate) fn recordings() -> Vec<PathBuf> {
    let folders = fs::read_dir(fixtures()).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let found: Vec<_> = folders
        .filter(|folder| folder.join("SHA256SUMS").exists())
        .collect();
    assert!(!found.is_empty(), "there are no recordings");
    found
}

/// Creates a home with a copy of a recorded store.
pub(crate) fn open_copy(recording: &Path) -> Tl {
    let tl = Tl::new();
    copy_folder(&recording.join("store"), &tl.home());
    tl
}

/// Copies a folder; files whose names end in `.zst` are decompressed.
fn copy_folder(from: &Path, to: &Path) {
    for (name, bytes) in read_folder(from) {
        let path = to.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Reads the files in a folder by their relative paths, decompressed.
fn read_folder(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            let inner = read_folder(&path).into_iter();
            files.extend(inner.map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            let name = name.strip_suffix(".zst").unwrap_or(name);
            files.insert(name.to_owned(), read_recorded(&path));
        }
    }
    files
}

fn read_recorded(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "zst") {
        return bytes;
    }
    let mut decompressed = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(&bytes[..])
        .unwrap()
        .read_to_end(&mut decompressed)
        .unwrap();
    decompressed
}

/// Parses `commands.txt` or `exports.txt`: the name of the recorded file, and the
/// arguments.
fn recorded_commands(list: &str) -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(fixtures().join(list)).unwrap();
    let lines = text.lines().map(|line| line.split_once(' ').unwrap());
    lines
        .map(|(name, arguments)| (name.to_owned(), shell_words::split(arguments).unwrap()))
        .collect()
}

fn run(tl: &Tl, arguments: &[String], more: &[&str]) -> String {
    let arguments = arguments
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied());
    tl.ok(&arguments.collect::<Vec<_>>())
}

/// Removes what may differ between two runs of the same version, and what is not part of
/// the contract: prose and floating-point results.
fn comparable(name: &str, json: &str) -> Value {
    let mut value: Value = serde_json::from_str(json).unwrap();
    let ignored: &[&str] = match name.split(['-', '.']).next().unwrap() {
        "doctor" => &["store"],
        "stats" => &["bytes"],
        "search" => &["took_ms", "score", "why"],
        "memory" => &["score"],
        // A policy may have a new name; the text of a request is written for the model.
        "context" => &["policy", "text", "tokens", "share", "why", "score"],
        _ => &[],
    };
    remove_fields(&mut value, ignored);
    value
}

fn remove_fields(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields
                .values_mut()
                .for_each(|value| remove_fields(value, names));
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| remove_fields(value, names)),
        _ => {}
    }
}

#[test]
fn recordings_are_never_changed() {
    for recording in recordings() {
        let sums = fs::read_to_string(recording.join("SHA256SUMS")).unwrap();
        for line in sums.lines() {
            let (digest, name) = line.split_once("  ").unwrap();
            let bytes = fs::read(recording.join(name)).unwrap();
            let found: String = Sha256::digest(&bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(found, digest, "{name}");
        }
    }
}

#[test]
fn a_recorded_store_prints_what_it_printed() {
    for recording in recordings() {
        let tl = open_copy(&recording);
        for (name, arguments) in recorded_commands("commands.txt") {
            let file = recording.join("output").join(&name);
            if !file.exists() {
                continue;
            }
            let recorded = fs::read_to_string(file).unwrap();
            let printed = run(&tl, &arguments, &["--json"]);
            let (now, before) = (comparable(&name, &printed), comparable(&name, &recorded));
            assert!(
                now == before,
                "{arguments:?} printed\n{now:#}\nand the recording has\n{before:#}"
            );
        }
        assert_eq!(tl.json(&["doctor"])["findings"], serde_json::json!([]));
    }
}

#[test]
fn a_recorded_store_is_exported_byte_for_byte() {
    for recording in recordings() {
        let tl = open_copy(&recording);
        let exports = tl.work().join("exports");
        fs::create_dir(&exports).unwrap();
        for (name, arguments) in recorded_commands("exports.txt") {
            let path = exports.join(&name);
            run(&tl, &arguments, &["--output", path.to_str().unwrap()]);
        }
        let now = read_folder(&exports);
        let before = read_folder(&recording.join("exports"));
        for (name, bytes) in &before {
            assert!(
                now.get(name) == Some(bytes),
                "{name} is now\n{}",
                now.get(name)
                    .map_or_else(Default::default, |bytes| String::from_utf8_lossy(bytes))
            );
        }
    }
}

#[test]
fn a_recorded_export_is_imported_whole() {
    for recording in recordings() {
        let export = read_recorded(&recording.join("exports/all.jsonl.zst"));
        let tl = Tl::new();
        let path = tl.work().join("all.jsonl");
        fs::write(&path, &export).unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(tl.json(&["import", path])["ok"], true);
        assert_eq!(tl.json(&["doctor"])["findings"], serde_json::json!([]));

        // The same sessions, with the same entries and digests, in any order.
        let again = tl.ok(&["export", "--all", "--format", "jsonl", "--reveal"]);
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(ToOwned::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(
            sorted(&again),
            sorted(std::str::from_utf8(&export).unwrap())
        );
        // The second time nothing is new.
        let report = tl.json(&["import", path]);
        assert_eq!(
            (&report["created"], &report["appended"]),
            (&0.into(), &0.into())
        );
    }
}

#[test]
fn a_recorded_index_is_searched_and_not_rebuilt() {
    for recording in recordings() {
        let tl = open_copy(&recording);
        let index = tl.home().join("sessions.index/text");
        let before = read_folder(&index);
        let found = tl.json(&["search", "redis", "port"]);
        assert_eq!(found["behind"], 0);
        assert_eq!(found["hits"][0]["session"], "cleared-0001");
        assert!(read_folder(&index) == before, "the index was written");
        // New entries are added to it.
        tl.ok(&["append", "planning", "The quokka is on call this week."]);
        let found = tl.json(&["search", "quokka"]);
        assert_eq!(
            found["hits"][0]["snippet"],
            "The quokka is on call this week."
        );
        assert_eq!(tl.json(&["doctor"])["findings"], serde_json::json!([]));
    }
}

#[test]
fn what_was_imported_before_is_not_imported_again() {
    for recording in recordings() {
        let tl = open_copy(&recording);
        let sources = tl.work().join("sources");
        copy_folder(&recording.join("sources"), &sources);
        let agents = agents(&sources);
        move_ledgers(&tl, &sources, &agents);

        assert_imports(&tl, &recording, &sources, &agents, "unchanged");
        for growth in fs::read_dir(fixtures().join("growth")).unwrap() {
            grow(&sources, &growth.unwrap().path());
        }
        assert_imports(&tl, &recording, &sources, &agents, "grown");

        let lines = fixtures().join("lines.jsonl");
        let report = tl.json(&["import", lines.to_str().unwrap()]);
        assert_eq!(
            (&report["known"], &report["appended"]),
            (&2.into(), &0.into())
        );
    }
}

fn agents(sources: &Path) -> Vec<String> {
    let folders = fs::read_dir(sources).unwrap();
    let names = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Imports each agent's sources and compares the reports with the recorded ones. Records
/// imported before are not read again, so they are not counted, skipped or reported a
/// second time.
fn assert_imports(tl: &Tl, recording: &Path, sources: &Path, agents: &[String], state: &str) {
    for agent in agents {
        let path = sources.join(agent);
        let path = path.to_str().unwrap();
        let report = tl.ok(&["import", "--from", agent, "--path", path, "--json"]);
        let report = report.replace(sources.to_str().unwrap(), "[sources]");
        let recorded = recording.join(format!("output/import-{state}-{agent}.json"));
        assert_eq!(report, fs::read_to_string(recorded).unwrap());
    }
}

/// Import progress is stored by source folder: moves it to the folder of the copies.
fn move_ledgers(tl: &Tl, sources: &Path, agents: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let url = format!("sqlite:{}", tl.store().display());
        let store = Throughline::open(&url).await.unwrap();
        let owner = store.on_behalf_of("casey".parse().unwrap());
        for agent in agents {
            let folder = sources.join(agent);
            let recorded = format!("{RECORDED_SOURCES}/{agent}");
            let recorded = owner.load_ledger(agent, &recorded).await.unwrap();
            let mut rows = Vec::new();
            for name in read_folder(&folder).into_keys() {
                let row = recorded.row(&name).expect("the ledger is readable").clone();
                assert!(
                    row.reader.is_some(),
                    "{agent}: where the reader was is readable"
                );
                set_modified(&folder.join(&name), row.modified);
                rows.push((name, row));
            }
            let mut moved = owner
                .load_ledger(agent, folder.to_str().unwrap())
                .await
                .unwrap();
            moved.record(rows).await.unwrap();
        }
        store.close().await.unwrap();
    });
}

fn set_modified(path: &Path, microseconds: i64) {
    let since_1970 = Duration::from_micros(microseconds.try_into().unwrap());
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + since_1970)
        .unwrap();
}

/// Appends to a source what `growth/AGENT__FILE` has for it.
fn grow(sources: &Path, growth: &Path) {
    let name = growth.file_name().unwrap().to_str().unwrap();
    let source = sources.join(name.replacen("__", "/", 1));
    let added = fs::read_to_string(growth).unwrap();
    if source
        .extension()
        .is_some_and(|extension| extension == "sql")
    {
        let database = rusqlite::Connection::open(source.with_extension("")).unwrap();
        database.execute_batch(&added).unwrap();
    } else {
        let mut file = File::options().append(true).open(source).unwrap();
        std::io::Write::write_all(&mut file, added.as_bytes()).unwrap();
    }
}
