//! Restores a backup into a store that others have open.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::{Path, PathBuf};

use common::{append, fill_session, findings, header, named_entry, open, read_log, run, session};
use rusqlite::Connection;
use throughline_sqlite::{
    RestoreError, RestoreOptions, RestoreReport, SqliteStore, restore_backup,
};
use throughline_store::{Append, ErrorKind, LogStore, Maintenance};

fn restore(store: &Path, from: &Path) -> Result<RestoreReport, RestoreError> {
    let options = RestoreOptions {
        keep_as: old_store_path(store),
        allow_other_store: false,
    };
    restore_backup(store, from, &options, &|_, _| ())
}

fn old_store_path(store: &Path) -> PathBuf {
    store.with_file_name("kept.db")
}

/// Opens a store with three entries in a backup and two more since.
fn store_with_backup(folder: &Path) -> (SqliteStore, PathBuf) {
    let store = open(&folder.join("sessions.db"));
    let backup = folder.join("backup.db");
    run(async {
        fill_session(&store, "s", 3, 500).await;
        store.backup(&backup, &|_, _| ()).await.unwrap();
        for name in ["four", "five"] {
            append(&store, &session("s"), named_entry(name, name)).await;
        }
    });
    (store, backup)
}

async fn count_entries(store: &SqliteStore) -> usize {
    read_log(store, &session("s")).await.unwrap().len()
}

#[test]
fn a_store_that_is_open_goes_on_with_what_was_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = store_with_backup(folder.path());
    let other = open(store.path());
    run(async {
        assert_eq!(count_entries(&other).await, 5);

        let report = restore(store.path(), &backup).unwrap();

        assert!(report.in_place);
        assert_eq!((report.sessions, report.entries), (1, 3));
        assert_eq!(report.replaced, Some(old_store_path(store.path())));
        for open in [&store, &other] {
            assert_eq!(count_entries(open).await, 3);
        }
        let next = append(&store, &session("s"), named_entry("new", "new")).await;
        assert_eq!(next.0, 4);
        let next = append(&other, &session("s"), named_entry("newer", "newer")).await;
        assert_eq!(next.0, 5);
        assert_eq!(findings(&store).await, []);
        // Everything acknowledged before is in the saved file.
        let before = open(&old_store_path(store.path()));
        assert_eq!(count_entries(&before).await, 5);
        assert_eq!(findings(&before).await, []);
        let left = std::fs::read_dir(folder.path()).unwrap();
        let left = left.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert!(!left.into_iter().any(|name| name.contains("restoring")));
    });
}

#[test]
fn everything_acknowledged_is_restored_or_kept_though_others_keep_writing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = store_with_backup(folder.path());
    run(async {
        let writing = store.clone();
        let (path, from) = (store.path().to_owned(), backup);
        let restoring = tokio::task::spawn_blocking(move || restore(&path, &from).unwrap());
        let mut acknowledged = Vec::new();
        for number in 0..200 {
            let new = named_entry(&format!("meanwhile-{number}"), "x");
            let id = new.id;
            let append = Append::unconditional(vec![new]);
            writing.append(&session("s"), append).await.unwrap();
            acknowledged.push(id);
        }
        restoring.await.unwrap();
        let mut found = read_log(&store, &session("s")).await.unwrap();
        found.extend(
            read_log(&open(&old_store_path(store.path())), &session("s"))
                .await
                .unwrap(),
        );
        for id in acknowledged {
            assert!(found.iter().any(|entry| entry.id == id), "{id} is missing");
        }
        assert_eq!(findings(&store).await, []);
    });
}

#[test]
fn what_is_no_sound_backup_of_this_store_is_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = store_with_backup(folder.path());
    let file = |name: &str| folder.path().join(name);

    let text = "no database at all".repeat(1_000);
    std::fs::write(file("text"), text).unwrap();
    Connection::open(file("foreign"))
        .unwrap()
        .execute_batch("CREATE TABLE songs (name)")
        .unwrap();
    std::fs::write(file("empty"), b"").unwrap();
    std::fs::copy(&backup, file("forged")).unwrap();
    Connection::open(file("forged"))
        .unwrap()
        .execute(
            "UPDATE entry SET payload = replace(payload, 's-1', 'EVIL')",
            [],
        )
        .unwrap();
    std::fs::copy(&backup, file("later")).unwrap();
    Connection::open(file("later"))
        .unwrap()
        .pragma_update(None, "user_version", 10_000)
        .unwrap();
    run(async {
        let another = open(&file("another.db"));
        another
            .create(&session("t").owner, header("t"))
            .await
            .unwrap();
        another.backup(&file("other"), &|_, _| ()).await.unwrap();
    });

    let expected = [
        ("text", ErrorKind::Damaged),
        ("foreign", ErrorKind::Invalid),
        ("empty", ErrorKind::Invalid),
        ("forged", ErrorKind::Damaged),
        ("later", ErrorKind::Unavailable),
        ("other", ErrorKind::Conflict),
    ];
    for (name, kind) in expected {
        let error = restore(store.path(), &file(name)).unwrap_err();
        assert_eq!(error.kind(), kind, "{name}: {error}");
    }
    assert!(!old_store_path(store.path()).exists());
    assert_eq!(run(count_entries(&store)), 5);

    let options = RestoreOptions {
        keep_as: old_store_path(store.path()),
        allow_other_store: true,
    };
    restore_backup(store.path(), &file("other"), &options, &|_, _| ()).unwrap();
    assert!(run(read_log(&store, &session("s"))).is_err());
}

#[test]
fn a_backup_of_an_earlier_schema_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let old = folder.path().join("old.db");
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let first = migrations.join("20261115090000_sessions.sql");
    let connection = Connection::open(&old).unwrap();
    connection
        .execute_batch(&std::fs::read_to_string(first).unwrap())
        .unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    connection
        .pragma_update(None, "application_id", 0x544c_696e)
        .unwrap();
    drop(connection);
    run(async {
        let store = open(&path);
        fill_session(&store, "s", 3, 10).await;
        restore(&path, &old).unwrap();
        fill_session(&store, "s", 2, 10).await;
        assert_eq!(findings(&store).await, []);
    });
}

#[test]
fn a_store_that_cannot_be_read_is_moved_aside() {
    for (main, log_is_left) in [(None, false), (None, true), (Some(&b""[..]), true)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, backup) = store_with_backup(folder.path());
        let path = store.path().to_owned();
        let wal = path.with_extension("db-wal");
        let bytes = std::fs::read(&wal).unwrap();
        run(store.close()).unwrap();
        drop(store);
        std::fs::remove_file(&path).unwrap();
        if let Some(main) = main {
            std::fs::write(&path, main).unwrap();
        }
        if log_is_left {
            std::fs::write(&wal, &bytes).unwrap();
        }

        let report = restore(&path, &backup).unwrap();

        assert!(!report.in_place);
        assert_eq!(report.replaced.is_some(), log_is_left);
        if log_is_left {
            let kept = old_store_path(&path).with_extension("db-wal");
            assert!(std::fs::read(kept).unwrap() == bytes, "the log was saved");
        }
        let store = open(&path);
        assert_eq!(run(count_entries(&store)), 3);
    }
}

#[test]
fn a_damaged_store_is_moved_aside_with_everything_that_was_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, backup) = store_with_backup(folder.path());
    let path = store.path().to_owned();
    run(store.close()).unwrap();
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..4096].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();

    let report = restore(&path, &backup).unwrap();

    assert!(!report.in_place);
    assert!(std::fs::read(old_store_path(&path)).unwrap() == bytes);
    assert_eq!(run(count_entries(&open(&path))), 3);
}
