//! Several processes append to one file at once.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{acknowledge, acknowledged, birth, check, entry, log, open, run, session};
use throughline_model::{EntryId, Seq, SessionRef};
use throughline_sqlite::SqliteStore;
use throughline_store::{Append, LogStore, StoreError};

/// Entries that each process appends to each of its sessions, in each way.
const ENTRIES: usize = 12;

/// Appends to one session that all have, and to some that only some have.
#[test]
fn child() {
    let Some(role) = common::role() else {
        return;
    };
    let (path, me) = (Path::new(&role[0]), &role[1]);
    let number: usize = me.parse().unwrap();
    run(async {
        // Nobody made the store beforehand: all do, at once.
        let store = open(path);
        let many = [format!("many-{}", number % 3), format!("own-{me}")];
        for id in ["one", &many[0], &many[1]] {
            store.create(&common::owner(), birth(id)).await.unwrap();
        }
        for count in 0..ENTRIES {
            for id in ["one", &many[0], &many[1]] {
                let to = session(id);
                let name = format!("{me}-{id}-{count}");
                let any = Append::any(vec![entry(&format!("{name}-any"), &name)]);
                for entry in store.append(&to, any).await.unwrap().entries {
                    acknowledge(&to, entry.seq, entry.id);
                }
                append_at_the_head(&store, &to, &name).await;
            }
        }
        common::say("done");
    });
}

/// Appends after what it believes to be the head, until it is.
async fn append_at_the_head(store: &SqliteStore, to: &SessionRef, name: &str) {
    let mut head = store.record(to).await.unwrap().card.head;
    loop {
        let new = vec![entry(&format!("{name}-at"), name)];
        match store.append(to, Append::after(head, new)).await {
            Ok(appended) => {
                let entry = &appended.entries[0];
                assert_eq!(entry.seq, head.next());
                return acknowledge(to, entry.seq, entry.id);
            }
            Err(StoreError::Moved { found, .. }) => head = found,
            Err(error) => panic!("{error}"),
        }
    }
}

fn together(processes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let running: Vec<_> = (0..processes)
        .map(|number| {
            let role = format!("{}\n{number}", path.display());
            common::process(&role).spawn().unwrap()
        })
        .collect();
    let mut all: BTreeMap<String, BTreeSet<(Seq, EntryId)>> = BTreeMap::new();
    let mut count = 0;
    for process in running {
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "an error reached somebody: {said}");
        for (id, places) in acknowledged(&output.stdout) {
            count += places.len();
            all.entry(id).or_default().extend(places);
        }
    }
    assert_eq!(count, processes * 3 * 2 * ENTRIES);
    run(async {
        let store = open(&path);
        for (id, places) in &all {
            let log = log(&store, &session(id)).await.unwrap();
            let kept: Vec<_> = log.iter().map(|entry| (entry.seq, entry.id)).collect();
            assert_eq!(kept, places.iter().copied().collect::<Vec<_>>(), "{id}");
            let numbers = (1..).map(Seq).zip(places);
            assert!(numbers.into_iter().all(|(seq, place)| seq == place.0));
        }
        let report = check(&store).await;
        assert_eq!(report.findings, []);
        assert_eq!(report.entries, count as u64);
    });
}

#[test]
fn two_processes_lose_nothing_and_number_densely() {
    together(2);
}

#[test]
fn eight_processes_lose_nothing_and_number_densely() {
    together(8);
}
