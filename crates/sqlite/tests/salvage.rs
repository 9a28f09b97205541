//! Salvage of damaged files, case by case.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::PathBuf;

use common::sample::{
    PAGE, create_sample_store, entry_ids, other_owner, run_salvage, sample_store,
    write_damaged_file,
};
use common::{
    fill_session, findings, header, logs, named_entry, open, read_log, run, session, trash_filter,
};
use rusqlite::Connection;
use throughline_model::{Body, Digest, Lineage, Owner, Seq};
use throughline_sqlite::{SalvageReport, salvage};
use throughline_store::{
    Append, Finding, LogStore, Maintenance, MemoryStore, ReadRange, Store, StoreError,
};

async fn assert_whole(store: &dyn Store, report: &SalvageReport) {
    let (_, original) = sample_store();
    assert_eq!(&logs(store).await.unwrap(), original);
    assert_eq!(report.lost, []);
    assert_eq!(report.unverified, 0);
    assert_eq!(report.blobs, 1);
    // All but the shared entries, plus those of the session in the trash.
    assert_eq!(report.sessions, original.len() as u64 + 1);
    assert_eq!(findings(store).await, []);
    let blob = Digest::of(&vec![0xab; 20_000]);
    store.blob(&Owner::local(), &blob).await.unwrap();
    let theirs = store.blob(&other_owner(), &blob).await;
    assert!(matches!(theirs, Err(StoreError::NoSuchBlob(_))));
    assert_eq!(store.list_projects(&Owner::local()).await.unwrap().len(), 1);
    let trash = store.list(&Owner::local(), &trash_filter(), None, 9).await;
    let trash = trash.unwrap().items;
    assert_eq!(trash.len(), 1);
    assert_eq!(trash[0].id.as_str(), "first");
    let second = store.header(&session("second")).await.unwrap();
    assert_eq!(second.key.unwrap().as_str(), "telegram:123");
    let deep = store.header(&session("deep")).await.unwrap();
    let from = Lineage::Forked {
        session: "fork".parse().unwrap(),
        at: Seq(23),
    };
    assert_eq!(deep.lineage, from);
}

#[test]
fn an_unharmed_store_is_salvaged_whole() {
    run(async {
        let (bytes, _) = sample_store();
        let (folder, path) = write_damaged_file(bytes);
        let into = open(&folder.path().join("new.db"));

        let report = run_salvage(&path, &into).await;

        assert_whole(&into, &report).await;
        assert!(std::fs::read(&path).unwrap() == *bytes, "it was changed");
        // The entries that forks share are shared again, not copied.
        let count: i64 = Connection::open(into.path())
            .unwrap()
            .query_row("SELECT count(*) FROM inherits", [], |row| row.get(0))
            .unwrap();
        assert_eq!(count, 5);
    });
}

#[test]
fn what_is_only_in_the_log_beside_the_file_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = create_sample_store(&path).await;
        let damaged = folder.path().join("damaged.db");
        std::fs::copy(&path, &damaged).unwrap();
        let log = std::fs::read(path.with_extension("db-wal")).unwrap();
        std::fs::write(damaged.with_extension("db-wal"), &log).unwrap();
        assert!(log.len() > 32, "the log is not empty");
        let into = MemoryStore::default();

        let report = run_salvage(&damaged, &into).await;

        assert_whole(&into, &report).await;

        // A log whose beginning is damaged is ignored, and a note says so.
        let mut broken = log.clone();
        broken[20] ^= 1;
        std::fs::write(damaged.with_extension("db-wal"), broken).unwrap();
        let report = run_salvage(&damaged, &MemoryStore::default()).await;
        assert!(
            report.notes.iter().any(|n| n.contains("ignored")),
            "{report:?}"
        );

        // A log damaged later is used up to the last commit before.
        let mut broken = log.clone();
        let middle = broken.len() / 2;
        broken[middle] ^= 1;
        std::fs::write(damaged.with_extension("db-wal"), &broken).unwrap();
        let into = MemoryStore::default();
        let report = run_salvage(&damaged, &into).await;
        let before = open(&damaged);
        assert_eq!(logs(&into).await.unwrap(), logs(&before).await.unwrap());
        assert!(
            report.notes.iter().any(|n| n.contains("ignored")),
            "{report:?}"
        );
        drop(store);
    });
}

#[test]
fn a_file_without_a_header_is_salvaged_whole() {
    run(async {
        let mut bytes = sample_store().0.clone();
        bytes[..PAGE].fill(0x5a);
        let (_folder, path) = write_damaged_file(&bytes);
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        assert_whole(&into, &report).await;
        assert!(
            report.notes.iter().any(|note| note.contains("4096")),
            "{report:?}"
        );
    });
}

/// Returns the sample store with all pages zeroed that contain some text.
fn sample_without(text: &[u8]) -> Vec<u8> {
    let mut bytes = sample_store().0.clone();
    let mut hits = 0;
    for page in bytes.chunks_mut(PAGE) {
        if page.windows(text.len()).any(|window| window == text) {
            page.fill(0);
            hits += 1;
        }
    }
    assert!(hits > 0, "no page holds it");
    bytes
}

#[test]
fn sessions_whose_rows_and_headers_are_lost_are_salvaged_under_another_name() {
    run(async {
        let (_, original) = sample_store();
        // Every page with a lineage, and all headers.
        let mut bytes = sample_without(b"{\"from\":\"");
        for page in bytes.chunks_mut(PAGE) {
            if page.windows(8).any(|window| window == b"{\"id\":\"p") {
                page.fill(0);
            }
        }
        let (_folder, path) = write_damaged_file(&bytes);
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        let (salvaged_log, all) = (entry_ids(&logs(&into).await.unwrap()), entry_ids(original));
        let missing: Vec<_> = all.difference(&salvaged_log).collect();
        assert!(missing.is_empty(), "{} entries are missing", missing.len());
        assert!(
            report
                .notes
                .iter()
                .any(|note| note.contains("only entries"))
        );
        // There were two owners, so the owner of the sessions is unknown.
        let owners = into.owners().await.unwrap();
        assert!(
            owners.iter().any(|owner| owner.as_str() == "recovered"),
            "{owners:?}"
        );
        assert_eq!(findings(&into).await, []);
    });
}

/// Creates a store with one session of ten entries, changed by `sql`.
async fn tampered_store(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(&path);
    fill_session(&store, "s", 10, 30).await;
    store.close().await.unwrap();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0);
    drop(connection);
    (folder, path)
}

#[test]
fn a_forged_entry_is_not_brought_over_but_shown() {
    run(async {
        let sql = "UPDATE entry SET payload = replace(payload, 's-4', 'EVIL') WHERE seq & 15 = 5";
        let (_folder, path) = tampered_store(sql).await;
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        let salvaged_log = into.read(&session("s"), ReadRange::tail(99)).await.unwrap();
        assert_eq!(salvaged_log.len(), 10);
        assert_eq!(salvaged_log[4].body, Body::Lost);
        assert!(
            salvaged_log[5]
                .message()
                .unwrap()
                .content
                .to_text()
                .starts_with("s-5")
        );
        assert_eq!(report.entries, 9);
        // The following entries still follow from its stored digest.
        assert_eq!(report.unverified, 0);
        assert_eq!(report.lost.len(), 1);
        assert_eq!(report.lost[0].entries, [(Seq(5), Seq(5))]);
        assert!(
            report.notes.iter().any(|note| note.contains("EVIL")),
            "{report:?}"
        );
        assert_eq!(findings(&into).await, []);
    });
}

#[test]
fn a_hole_keeps_its_numbers_and_what_follows_is_unverified() {
    run(async {
        let (_folder, path) = tampered_store("DELETE FROM entry WHERE seq & 15 IN (3, 4, 7)").await;
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        let salvaged_log = read_log(&into, &session("s")).await.unwrap();
        let lost: Vec<_> = salvaged_log
            .iter()
            .filter(|entry| entry.decode().unwrap().body == Body::Lost)
            .map(|entry| entry.seq.0)
            .collect();
        assert_eq!(lost, [3, 4, 7]);
        assert_eq!(salvaged_log.len(), 10);
        assert_eq!(report.lost[0].entries, [(Seq(3), Seq(4)), (Seq(7), Seq(7))]);
        assert_eq!((report.entries, report.unverified), (7, 2));
        assert_eq!(findings(&into).await, []);
    });
}

#[test]
fn an_entry_whose_number_is_damaged_does_not_become_somebody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        // So that the row ids of the other two are stored as bytes.
        store.create(&other_owner(), header("first")).await.unwrap();
        let mine = fill_session(&store, "mine", 10, 30).await;
        let theirs = other_owner().session(&"theirs".parse().unwrap());
        store
            .create(&other_owner(), header("theirs"))
            .await
            .unwrap();
        for name in ["one", "two", "three", "four"] {
            let new = Append::unconditional(vec![named_entry(name, name)]);
            store.append(&theirs, new).await.unwrap();
        }
        let fifth = read_log(&store, &mine).await.unwrap()[4].clone();
        store.close().await.unwrap();
        drop(store);
        // Two of the other owner's entries are lost, and my fifth is numbered like one of them.
        let hole = "DELETE FROM entry WHERE session = 3 AND seq IN (2, 3)";
        let connection = Connection::open(&path).unwrap();
        assert_eq!(connection.execute(hole, []).unwrap(), 2);
        drop(connection);
        let mut bytes = std::fs::read(&path).unwrap();
        // Its session, its number and the two row ids it links to, after two sessions were
        // created; then its id.
        let row = [&[2, 5, 6, 6], &fifth.id.as_bytes()[..]].concat();
        let offset = bytes.windows(row.len()).position(|window| window == row);
        let offset = offset.expect("my fifth");
        bytes[offset..offset + 2].copy_from_slice(&[3, 3]);
        std::fs::write(&path, bytes).unwrap();
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        let salvaged_log = read_log(&into, &theirs).await.unwrap();
        assert_eq!(salvaged_log[2].decode().unwrap().body, Body::Lost);
        let salvaged_log = read_log(&into, &session("mine")).await.unwrap();
        assert_eq!(salvaged_log[4], fifth);
        assert_eq!(report.lost.len(), 1);
    });
}

#[test]
fn a_missing_end_is_reported_without_placeholders() {
    run(async {
        let (_folder, path) = tampered_store("DELETE FROM entry WHERE seq & 15 > 8").await;
        let into = MemoryStore::default();

        let report = run_salvage(&path, &into).await;

        assert_eq!(read_log(&into, &session("s")).await.unwrap().len(), 8);
        assert_eq!(report.lost[0].entries, [(Seq(9), Seq(10))]);
        assert_eq!(report.unverified, 0);
    });
}

#[test]
fn a_damaged_attachment_is_not_brought_over_and_is_named() {
    run(async {
        let mut bytes = sample_store().0.clone();
        let needle = [0xab; 64];
        let offset = bytes
            .windows(64)
            .rposition(|window| window == needle)
            .unwrap();
        bytes[offset] = 0;
        let (folder, path) = write_damaged_file(&bytes);
        let into = open(&folder.path().join("new.db"));

        let report = run_salvage(&path, &into).await;

        assert_eq!(report.blobs, 0);
        let digest = Digest::of(&vec![0xab; 20_000]);
        let named = digest.to_string();
        assert!(
            report.notes.iter().any(|note| note.contains(&named)),
            "{report:?}"
        );
        assert_eq!(report.lost, []);
        assert_eq!(
            findings(&into).await,
            [Finding::Blob {
                digest,
                missing: true
            }]
        );
    });
}

#[test]
fn a_store_in_use_is_not_salvaged_into() {
    run(async {
        let (_folder, path) = write_damaged_file(&sample_store().0);
        let into = MemoryStore::default();
        into.create(&Owner::local(), header("mine")).await.unwrap();
        assert!(salvage(&path, &into, &|_, _| ()).await.is_err());
        let nowhere = path.with_file_name("nowhere.db");
        let into = MemoryStore::default();
        assert!(salvage(&nowhere, &into, &|_, _| ()).await.is_err());
    });
}

#[test]
fn a_report_is_shown_as_json() {
    run(async {
        let (_folder, path) = tampered_store("DELETE FROM entry WHERE seq & 15 = 3").await;
        let report = run_salvage(&path, &MemoryStore::default()).await;
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["lost"][0]["entries"][0], serde_json::json!([3, 3]));
        assert_eq!(json["lost"][0]["session"], "s");
    });
}
