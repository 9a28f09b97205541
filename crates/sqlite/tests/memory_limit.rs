//! A check that runs out of memory fails with that error instead of reporting damage.
//!
//! In a separate test program, since the limit applies to the whole process.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{check, fill_session, open, run};
use rusqlite::Connection;
use throughline_store::{ErrorKind, Maintenance};

/// Lowers the heap limit; it cannot be raised again.
fn limit_heap(bytes: u64) {
    let set = format!("PRAGMA hard_heap_limit = {bytes}");
    let connection = Connection::open_in_memory();
    // There may be too little memory even for this.
    if let Ok(connection) = connection {
        let _ = connection.query_row(&set, [], |row| row.get::<_, i64>(0));
    }
}

#[test]
fn running_out_of_memory_is_not_taken_for_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "s", 2_000, 500).await;
        fill_session(&store, "long", 20, 100_000).await;
        store.close().await.unwrap();
        let store = open(&path);
        assert_eq!(check(&store).await.sessions, 2);

        let mut while_checking = 0;
        for kilobytes in (100..3_000).rev().step_by(50) {
            limit_heap(kilobytes << 10);
            match store.check(&|_, _| ()).await {
                Ok(report) => assert_eq!(report.findings, [], "with {kilobytes} kB"),
                Err(error) => {
                    let text = error.to_string();
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{text}");
                    assert!(text.contains("memory"), "{text}");
                    while_checking += u32::from(!text.contains("opening"));
                }
            }
        }
        assert!(while_checking > 0);
    });
}
