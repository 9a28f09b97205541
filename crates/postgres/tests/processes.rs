//! Several processes append to one database at once, and some are killed.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};

use common::{
    header, named_entry, open, parse_acknowledgements, print_acknowledgement, read_log, run,
    session,
};
use throughline_model::{EntryId, Seq};
use throughline_postgres::PostgresStore;
use throughline_postgres::test_database::TestDatabase;
use throughline_store::conformance::processes::{ConsistentAppends, append_concurrently};
use throughline_store::{Append, LogStore, Maintenance};

/// The body of a child process, which the tests below start; does nothing in the parent.
#[test]
fn child() {
    let Some(role) = common::role() else {
        return;
    };
    let [url, me, how] = &role[..] else {
        panic!("{role:?}");
    };
    run(async {
        let store = open(url).await;
        if how == "endless" {
            append_forever(&store, me).await;
        } else {
            append_concurrently(&store, me).await;
        }
    });
}

/// Appends two entries at a time until the process is killed.
async fn append_forever(store: &PostgresStore, me: &str) {
    let write = async |id: &str| {
        let to = session(id);
        store.create(&to.owner, header(id)).await.unwrap();
        for count in 0.. {
            let name = format!("{me}-{id}-{count}");
            // Some are longer than a page.
            let bytes = if count % 16 == 0 { 9_000 } else { 100 };
            let new = vec![
                named_entry(&format!("{name}-a"), &name),
                named_entry(&format!("{name}-b"), &"y".repeat(bytes)),
            ];
            let appended = store.append(&to, Append::unconditional(new)).await.unwrap();
            for entry in appended.entries {
                print_acknowledgement(&to, entry.seq, entry.id);
            }
        }
    };
    tokio::join!(write("red"), write("green"), write("blue"));
}

#[test]
fn processes_together_lose_nothing_and_number_densely() {
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let role = |number| format!("{}\n{number}\nmeasured", database.url());
    let together = ConsistentAppends::run(5, role);
    run(async { together.assert_stored(&open(&database.url()).await).await });
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    const ROUNDS: u64 = 8;
    let Some(database) = TestDatabase::new() else {
        return;
    };
    let mut all: BTreeMap<String, Vec<(Seq, EntryId)>> = BTreeMap::new();
    for round in 0..ROUNDS {
        // Two at a time; one is killed while the other continues.
        let start = |me: String| {
            let role = format!("{}\n{me}\nendless", database.url());
            common::child_process(&role).spawn().unwrap()
        };
        let both = [start(format!("{round}-a")), start(format!("{round}-b"))];
        // Killed after this many lines of output, in the middle of whatever comes next.
        let wanted = 20 + usize::try_from(round * 37 % 90).unwrap();
        for mut process in both {
            let mut said = BufReader::new(process.stdout.take().unwrap());
            let mut output = Vec::new();
            for _ in 0..wanted {
                said.read_until(b'\n', &mut output).unwrap();
            }
            process.kill().unwrap();
            said.read_to_end(&mut output).unwrap();
            process.wait().unwrap();
            for (id, places) in parse_acknowledgements(&output) {
                all.entry(id).or_default().extend(places);
            }
        }
        run(async {
            let store = open(&database.url()).await;
            for (id, places) in &all {
                let log = read_log(&store, &session(id)).await.unwrap();
                for (seq, entry) in places {
                    let kept = log.get(usize::try_from(seq.0).unwrap() - 1);
                    assert_eq!(kept.map(|kept| kept.id), Some(*entry), "{id} {seq}");
                }
            }
            let report = store.check(&|_, _| ()).await.unwrap();
            assert_eq!(report.findings, [], "after round {round}");
            // Entries are appended in pairs: half of an append is never stored.
            assert_eq!(report.entries % 2, 0);
        });
    }
    let total: usize = all.values().map(Vec::len).sum();
    assert!(total > 100, "only {total} entries were ever acknowledged");
}
