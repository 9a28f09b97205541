//! Files that were truncated, overwritten or tampered with.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::{
    SeededRng, append, check, fill_session, findings, header, named_entry, open, owner, read_log,
    run, session,
};
use rusqlite::Connection;
use throughline_model::{Body, NewEntry, Seq, SessionRef, StoredEntry};
use throughline_sqlite::{Options, SqliteStore, salvage};
use throughline_store::{Finding, LogStore, Maintenance, MemoryStore, ReadRange, StoreError};

const PAGE: u64 = 4096;

fn wal_path(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// Copies a store with its log into a new folder.
fn copy_store(path: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("sessions.db");
    std::fs::copy(path, &to).unwrap();
    if wal_path(path).exists() {
        std::fs::copy(wal_path(path), wal_path(&to)).unwrap();
    }
    (folder, to)
}

type Logs = BTreeMap<&'static str, Vec<StoredEntry>>;
const SESSIONS: [&str; 3] = ["one", "two", "three"];

async fn logs(store: &SqliteStore) -> Logs {
    let mut logs = Logs::new();
    for id in SESSIONS {
        logs.insert(id, read_log(store, &session(id)).await.unwrap());
    }
    logs
}

#[test]
fn a_log_cut_anywhere_leaves_a_sound_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let mut rng = SeededRng(11);
    run(async {
        let store = open(&path);
        for id in SESSIONS {
            store.create(&owner(), header(id)).await.unwrap();
        }
        for count in 0..40 {
            for id in SESSIONS {
                let name = format!("{id}-{count}");
                append(&store, &session(id), named_entry(&name, &name.repeat(40))).await;
            }
        }
        let whole = logs(&store).await;
        let length = std::fs::metadata(wal_path(&path)).unwrap().len();
        let mut cuts = vec![0, 1, 31, 32, 33, 32 + 24, length - 1, length];
        cuts.extend((0..32).map(|_| rng.below(length)));
        let mut stored_sometimes = 0;
        for cut in cuts {
            let (_folder, damaged) = copy_store(&path);
            let file = std::fs::OpenOptions::new()
                .write(true)
                .open(wal_path(&damaged));
            file.unwrap().set_len(cut).unwrap();

            let store = open(&damaged);

            for (id, whole) in &whole {
                let stored = match read_log(&store, &session(id)).await {
                    Ok(stored) => stored,
                    Err(StoreError::NoSuchSession(_)) => Vec::new(),
                    Err(error) => panic!("cut at {cut}: {error}"),
                };
                assert!(whole.starts_with(&stored), "{id}, cut at {cut}");
                stored_sometimes += usize::from(!stored.is_empty());
            }
            assert_eq!(findings(&store).await, [], "cut at {cut}");
        }
        assert!(stored_sometimes > 30, "nothing was ever stored");
    });
}

#[test]
fn garbage_in_the_file_is_reported_and_the_rest_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "one", 60, 300).await;
        fill_session(&store, "two", 60, 900).await;
        fill_session(&store, "three", 6, 9_000).await;
        let whole = logs(&store).await;
        store.close().await.unwrap();
        drop(store);
        // Move everything into the main file.
        let connection = Connection::open(&path).unwrap();
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        drop(connection);

        let pages = std::fs::metadata(&path).unwrap().len() / PAGE;
        let mut opened = 0;
        for seed in 0..48 {
            let mut rng = SeededRng(seed);
            let (_folder, damaged) = copy_store(&path);
            let mut bytes = std::fs::read(&damaged).unwrap();
            for _ in 0..=rng.below(3) {
                let start = usize::try_from(rng.below(pages) * PAGE).unwrap();
                // A whole page, or part of one.
                let (from, length) = match rng.below(2) {
                    0 => (start, 4096),
                    _ => (
                        start + usize::try_from(rng.below(3_000)).unwrap(),
                        1 + usize::try_from(rng.below(1_000)).unwrap(),
                    ),
                };
                bytes[from..from + length].copy_from_slice(&rng.bytes(length));
            }
            std::fs::write(&damaged, bytes).unwrap();

            if let Ok(store) = SqliteStore::open(&damaged, Options::default()) {
                opened += 1;
                assert_damage_found(&store, &whole, seed).await;
            }
            assert_rest_salvaged(&damaged, &whole, seed).await;
        }
        assert!(
            opened > 20,
            "the damage was always too great to test reading"
        );
    });
}

/// If anything reads differently than written, the check must report a finding.
async fn assert_damage_found(store: &SqliteStore, whole: &Logs, seed: u64) {
    let mut wrong = Vec::new();
    for (id, whole) in whole {
        match read_log(store, &session(id)).await {
            Ok(stored) if stored == *whole => {}
            Ok(_) => wrong.push(format!("{id} reads differently")),
            // A thread that panicked sends no reply.
            Err(StoreError::Closed) => panic!("seed {seed}: a read panicked"),
            Err(error) => wrong.push(format!("{id}: {error}")),
        }
    }
    match store.check(&|_, _| ()).await {
        Err(StoreError::Closed) => panic!("seed {seed}: the check panicked"),
        Err(_) => {}
        Ok(report) => assert!(
            wrong.is_empty() || !report.findings.is_empty(),
            "seed {seed}: the check found nothing, but {wrong:?}"
        ),
    }
}

/// Asserts that everything salvaged is as written and the rest is reported as lost.
async fn assert_rest_salvaged(damaged: &Path, whole: &Logs, seed: u64) {
    let into = MemoryStore::default();
    let salvaged = salvage(damaged, &into, &|_, _| ()).await.unwrap();
    let mut different = 0;
    for (id, whole) in whole {
        let id = id.parse().unwrap();
        let stored = read_log(&into, &owner().session(&id))
            .await
            .unwrap_or_default();
        for original in whole {
            let lost = salvaged.lost.iter().any(|loss| {
                let mut ranges = loss.entries.iter();
                loss.session == id && ranges.any(|(from, to)| (*from..=*to).contains(&original.seq))
            });
            let stored = stored.iter().find(|stored| stored.seq == original.seq);
            match stored.map(|stored| (stored.decode().unwrap().body, &stored.payload)) {
                Some((Body::Lost, _)) => assert!(lost, "seed {seed}: silently lost"),
                Some((_, payload)) => different += u64::from(*payload != original.payload),
                None if lost => {}
                // Its name was lost, and it has another one.
                None => assert!(
                    !salvaged.notes.is_empty(),
                    "seed {seed}: {id} {} is missing",
                    original.seq
                ),
            }
        }
    }
    assert!(
        different <= salvaged.unverified,
        "seed {seed}: verified entries differ"
    );
    assert_eq!(findings(&into).await, [], "seed {seed}");
}

#[test]
fn a_changed_payload_is_found_to_the_entry_and_harms_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        for id in SESSIONS {
            fill_session(&store, id, 20, 50).await;
        }
        let changed = Connection::open(&path)
            .unwrap()
            .execute(
                "UPDATE entry SET payload = replace(payload, 'two-6 ', 'two-9 ')
                 WHERE seq = 7 AND session = (SELECT pk FROM session WHERE id = 'two')",
                [],
            )
            .unwrap();
        assert_eq!(changed, 1);

        let found = findings(&store).await;

        let [Finding::Entry { session, seq, .. }] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((session.as_str(), *seq), ("two", Seq(7)));
        for id in SESSIONS {
            let to = common::session(id);
            assert_eq!(store.read(&to, ReadRange::tail(5)).await.unwrap().len(), 5);
            append(&store, &to, named_entry("more", "more")).await;
        }
    });
}

/// Damages derived data and asserts that a check finds it and a rebuild repairs it.
fn assert_rebuild_mends(sql: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "one", 20, 50).await;
        let two = fill_session(&store, "two", 20, 50).await;
        for (name, body) in [
            (
                "pin",
                Body::Pinned {
                    text: "keep".into(),
                },
            ),
            (
                "tag",
                Body::Tagged {
                    tags: vec!["urgent".parse().unwrap()],
                },
            ),
        ] {
            let new = named_entry(name, "");
            append(&store, &two, NewEntry::new(new.id, new.at, body)).await;
        }
        // A fork, for the snapshot stored at its fork point.
        store.fork(&two, Seq(22), header("fork")).await.unwrap();
        assert_eq!(findings(&store).await, []);
        let connection = Connection::open(&path).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");

        let found = findings(&store).await;

        let of_two = |finding: &Finding| match finding {
            Finding::Derived { session, .. } => session.as_str() == "two",
            _ => false,
        };
        assert!(!found.is_empty(), "not noticed: {sql}");
        let others: Vec<_> = found.iter().filter(|f| !of_two(f)).collect();
        assert!(others.is_empty(), "{sql}: {others:?}");
        assert!(found.iter().all(Finding::is_rebuildable));

        let report = store.rebuild(&|_, _| ()).await.unwrap();

        assert_eq!(report.findings, [], "{sql}");
        assert_eq!(check(&store).await.findings, []);
        let to: SessionRef = two.clone();
        append(&store, &to, named_entry("more", "more")).await;
        assert_eq!(check(&store).await.findings, []);
    });
}

#[test]
fn session_info_that_was_tampered_with_is_mended() {
    for column in [
        "messages = 999",
        "name = 'forged'",
        "preview = 'forged'",
        "head = 3",
        "digest = zeroblob(32)",
        "status = 'archived'",
        "status = 'nonsense'",
        "last_activity = 1",
        "lineage = '{'",
        "tokens = '{\"input\":5}'",
        "tags = NULL",
        "tags = '[\"urgent\",\"forged\"]'",
    ] {
        assert_rebuild_mends(&format!("UPDATE session SET {column} WHERE id = 'two'"));
    }
}

#[test]
fn tags_that_were_tampered_with_are_mended() {
    let two = "(SELECT pk FROM session WHERE id = 'two')";
    assert_rebuild_mends(&format!(
        "UPDATE session_tag SET tag = 'forged' WHERE session = {two}"
    ));
    assert_rebuild_mends(&format!("DELETE FROM session_tag WHERE session = {two}"));
    assert_rebuild_mends(&format!(
        "INSERT INTO session_tag (owner, tag, session) VALUES (1, 'forged', {two})"
    ));
}

#[test]
fn session_state_that_was_tampered_with_is_mended() {
    let of_two = "session = (SELECT pk FROM session WHERE id = 'two')";
    assert_rebuild_mends(&format!(
        "UPDATE standing SET json = replace(json, 'keep', 'drop') WHERE {of_two}"
    ));
    assert_rebuild_mends(&format!("UPDATE standing SET json = '{{' WHERE {of_two}"));
    assert_rebuild_mends(&format!("DELETE FROM standing WHERE {of_two}"));
}

#[test]
fn a_snapshot_that_was_tampered_with_is_mended() {
    for change in [
        "json = replace(json, 'keep', 'drop')",
        "json = replace(json, '\"messages\":20', '\"messages\":21')",
        "json = '{'",
        "seq = 20",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        run(async {
            let store = open(&path);
            let one = fill_session(&store, "one", 20, 50).await;
            let new = named_entry("pin", "");
            let pinned = Body::Pinned {
                text: "keep".into(),
            };
            append(&store, &one, NewEntry::new(new.id, new.at, pinned)).await;
            store.fork(&one, Seq(20), header("fork")).await.unwrap();
            store.fork(&one, Seq(21), header("other")).await.unwrap();
            let connection = Connection::open(&path).unwrap();
            let sql = format!(
                "UPDATE snapshot SET {change}
                 WHERE session = (SELECT pk FROM session WHERE id = 'other')"
            );
            assert_eq!(connection.execute(&sql, []).unwrap(), 1);

            let found = findings(&store).await;

            let of_other = |finding: &Finding| match finding {
                Finding::Derived { session, .. } => session.as_str() == "other",
                _ => false,
            };
            assert!(!found.is_empty(), "not noticed: {change}");
            assert!(found.iter().all(of_other), "{change}: {found:?}");
            let report = store.rebuild(&|_, _| ()).await.unwrap();
            assert_eq!(report.findings, [], "{change}");
        });
    }
}

#[test]
fn a_rebuild_mends_the_others_and_hides_no_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "one", 20, 50).await;
        fill_session(&store, "two", 20, 50).await;
        let connection = Connection::open(&path).unwrap();
        for sql in [
            // The last entry of the first session is lost, and the second's session info is
            // wrong.
            "DELETE FROM entry WHERE seq = 20 AND session = (SELECT pk FROM session WHERE id = 'one')",
            "UPDATE session SET messages = 999 WHERE id = 'two'",
        ] {
            assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
        }

        let report = store.rebuild(&|_, _| ()).await.unwrap();

        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        assert!(matches!(
            &report.findings[0],
            Finding::Entry { session, seq: Seq(20), .. } if session.as_str() == "one"
        ));
        let mended = store.record(&session("two")).await.unwrap();
        assert_eq!(mended.info.messages, 20);
    });
}
