//! A store opens after its very first command was killed before the file was in WAL mode.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use rusqlite::Connection;

#[test]
fn a_journal_left_by_the_first_command_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    // A transaction in rollback mode that is in progress: its journal is on disk.
    let made = folder.path().join("made.db");
    let connection = Connection::open(&made).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (x); PRAGMA cache_size = 1; BEGIN;
             WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 4000)
             INSERT INTO t SELECT hex(randomblob(64)) FROM n;",
        )
        .unwrap();
    // The copy is what a kill leaves: nobody holds a lock on it.
    std::fs::copy(&made, &path).unwrap();
    let journal = |path: &std::path::Path| path.with_extension("db-journal");
    std::fs::copy(journal(&made), journal(&path)).unwrap();

    let opened =
        throughline_sqlite::SqliteStore::open(&path, throughline_sqlite::Options::default());
    // The file is another program's database, which is a different error from a leftover
    // journal.
    let output = format!("{opened:?}");
    assert!(!output.contains("readonly"), "{output}");
    assert!(!journal(&path).exists());
}
