//! Opens files of other versions, of other programs, and files that are no database.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::Path;

use common::{append, findings, header, named_entry, open, owner, run};
use rusqlite::Connection;
use throughline_sqlite::{Options, SqliteStore};
use throughline_store::{ErrorKind, LogStore, StoreError};

const APPLICATION_ID: i64 = 0x544c_696e;

/// Returns all migrations, oldest first, as the files have them.
fn migrations() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "sql"))
        .collect();
    files.sort();
    let read = |path| std::fs::read_to_string(path).unwrap();
    files.into_iter().map(read).collect()
}

fn open_error(path: &Path) -> StoreError {
    SqliteStore::open(path, Options::default()).expect_err("it opened")
}

#[test]
fn a_store_of_every_earlier_schema_opens_and_works() {
    let migrations = migrations();
    assert!(!migrations.is_empty());
    for known in 0..=migrations.len() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let connection = Connection::open(&path).unwrap();
        for sql in &migrations[..known] {
            connection.execute_batch(sql).unwrap();
        }
        if known > 0 {
            let version = i64::try_from(known).unwrap();
            connection
                .pragma_update(None, "user_version", version)
                .unwrap();
            connection
                .pragma_update(None, "application_id", APPLICATION_ID)
                .unwrap();
        }
        drop(connection);

        run(async {
            let store = open(&path);
            store.create(&owner(), header("s")).await.unwrap();
            append(&store, &common::session("s"), named_entry("one", "hello")).await;
            assert_eq!(findings(&store).await, [], "from schema {known}");
        });
    }
}

#[test]
fn a_store_of_a_later_version_is_refused_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(common::fill_session(&open(&path), "s", 1, 10));
    let later = i64::try_from(migrations().len()).unwrap() + 1;
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", later)
        .unwrap();

    let error = open_error(&path);

    assert!(
        matches!(&error, StoreError::SchemaTooNew { found, .. } if *found == later.to_string())
    );
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    for (version, application) in [(0, 0), (1, 0), (7, 99), (0, 99)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("CREATE TABLE recipe (name TEXT); INSERT INTO recipe VALUES ('soup')")
            .unwrap();
        connection
            .pragma_update(None, "user_version", version)
            .unwrap();
        connection
            .pragma_update(None, "application_id", application)
            .unwrap();
        drop(connection);
        let before = std::fs::read(&path).unwrap();

        let error = open_error(&path);

        assert!(matches!(error, StoreError::DamagedStore { .. }), "{error}");
        assert!(error.to_string().contains("another program"), "{error}");
        assert!(std::fs::read(&path).unwrap() == before, "the file changed");
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["My diary.\n".to_owned(), "My diary.\n".repeat(1_000)] {
        let path = folder.path().join("diary.txt");
        std::fs::write(&path, &text).unwrap();

        let error = open_error(&path);

        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(!folder.path().join("diary.txt-wal").exists());
    }
}

#[test]
fn an_empty_file_becomes_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    std::fs::write(&path, "").unwrap();
    run(async {
        common::fill_session(&open(&path), "s", 3, 10).await;
        assert_eq!(findings(&open(&path)).await, []);
    });
}

#[cfg(unix)]
#[test]
fn a_new_store_is_for_its_owners_eyes_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/sessions.db");
    let store = open(&path);
    run(common::fill_session(&store, "s", 1, 10));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&folder.path().join("a/b/sessions.db-wal")), 0o600);
    assert_eq!(mode(&folder.path().join("a/b")), 0o700);
    assert_eq!(mode(&folder.path().join("a")), 0o700);
}

#[test]
fn a_store_that_a_later_version_migrates_while_it_is_open_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        store.create(&owner(), header("s")).await.unwrap();
        let to = common::session("s");
        append(&store, &to, named_entry("one", "hello")).await;
        let later = Connection::open(&path).unwrap();
        later.pragma_update(None, "user_version", 10_000).unwrap();

        let new = throughline_store::Append::unconditional(vec![named_entry("two", "late")]);
        let refusals = [
            store.append(&to, new).await.unwrap_err(),
            store.create(&owner(), header("t")).await.unwrap_err(),
            store.record(&to).await.unwrap_err(),
        ];
        for error in refusals {
            assert!(
                matches!(error, StoreError::SchemaTooNew { .. }),
                "{error:?}"
            );
            assert_eq!(error.kind(), ErrorKind::Unavailable);
        }
        let entries: i64 = later
            .query_row("SELECT count(*) FROM entry", [], |row| row.get(0))
            .unwrap();
        assert_eq!(entries, 1);
    });
}
