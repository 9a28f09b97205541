//! The very first command is killed before the file is in WAL mode: the store opens all the same.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use rusqlite::Connection;

#[test]
fn a_journal_left_by_the_first_command_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    // A transaction of rollback mode that is under way: its journal is on the disk.
    let made = folder.path().join("made.db");
    let connection = Connection::open(&made).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (x); PRAGMA cache_size = 1; BEGIN;
             WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 4000)
             INSERT INTO t SELECT hex(randomblob(64)) FROM n;",
        )
        .unwrap();
    // Copied, it is what a kill leaves: nobody holds a lock on it.
    std::fs::copy(&made, &path).unwrap();
    let journal = |path: &std::path::Path| path.with_extension("db-journal");
    std::fs::copy(journal(&made), journal(&path)).unwrap();

    let opened =
        throughline_sqlite::SqliteStore::open(&path, throughline_sqlite::Options::default());
    // The file is somebody else's database, which is another error than a journal in the way.
    let said = format!("{opened:?}");
    assert!(!said.contains("readonly"), "{said}");
    assert!(!journal(&path).exists());
}
