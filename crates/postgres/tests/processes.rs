//! Several processes append to one database at once, and some are killed.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _};

use common::{acknowledge, acknowledged, append, birth, entry, log, open, owner, run, session};
use throughline_model::{EntryId, Seq, SessionRef};
use throughline_postgres::PostgresStore;
use throughline_postgres::trial::Trial;
use throughline_store::{Append, LogStore, StoreError, Upkeep};

/// Entries that each process appends to each of its sessions, in each way.
const ENTRIES: usize = 12;

/// Does what this process was started for.
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
            endless(&store, me).await;
        } else {
            measured(&store, me).await;
        }
    });
}

/// Appends to one session that all have, and to some that only some have.
async fn measured(store: &PostgresStore, me: &str) {
    let number: usize = me.parse().unwrap();
    let many = [format!("many-{}", number % 3), format!("own-{me}")];
    for id in ["one", &many[0], &many[1]] {
        store.create(&owner(), birth(id)).await.unwrap();
    }
    for count in 0..ENTRIES {
        let ways = ["one", &many[0], &many[1]].map(|id| async move {
            let to = session(id);
            let name = format!("{me}-{id}-{count}");
            let seq = append(store, &to, entry(&format!("{name}-any"), &name)).await;
            acknowledge(
                &to,
                seq,
                EntryId::derived(&[format!("{name}-any").as_bytes()]),
            );
            append_at_the_head(store, &to, &name).await;
        });
        // Together, so that batches of several processes want the same sessions.
        futures_util::future::join_all(ways).await;
    }
}

/// Appends after what it believes to be the head, until it is.
async fn append_at_the_head(store: &PostgresStore, to: &SessionRef, name: &str) {
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

/// Appends in twos until somebody ends it.
async fn endless(store: &PostgresStore, me: &str) {
    let write = async |id: &str| {
        let to = session(id);
        store.create(&to.owner, birth(id)).await.unwrap();
        for count in 0.. {
            let name = format!("{me}-{id}-{count}");
            // Some are longer than a page.
            let bytes = if count % 16 == 0 { 9_000 } else { 100 };
            let new = vec![
                entry(&format!("{name}-a"), &name),
                entry(&format!("{name}-b"), &"y".repeat(bytes)),
            ];
            let appended = store.append(&to, Append::any(new)).await.unwrap();
            for entry in appended.entries {
                acknowledge(&to, entry.seq, entry.id);
            }
        }
    };
    tokio::join!(write("red"), write("green"), write("blue"));
}

#[test]
fn processes_together_lose_nothing_and_number_densely() {
    const PROCESSES: usize = 5;
    let Some(trial) = Trial::new() else {
        return;
    };
    let running: Vec<_> = (0..PROCESSES)
        .map(|number| {
            let role = format!("{}\n{number}\nmeasured", trial.url());
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
    assert_eq!(count, PROCESSES * 3 * 2 * ENTRIES);
    run(async {
        let store = open(&trial.url()).await;
        for (id, places) in &all {
            let log = log(&store, &session(id)).await;
            let kept: Vec<_> = log.iter().map(|entry| (entry.seq, entry.id)).collect();
            assert_eq!(kept, places.iter().copied().collect::<Vec<_>>(), "{id}");
            let numbers = (1..).map(Seq).zip(places);
            assert!(numbers.into_iter().all(|(seq, place)| seq == place.0));
        }
        let report = store.check(&|_, _| ()).await.unwrap();
        assert_eq!(report.findings, []);
        assert_eq!(report.entries, count as u64);
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    const ROUNDS: u64 = 8;
    let Some(trial) = Trial::new() else {
        return;
    };
    let mut all: BTreeMap<String, Vec<(Seq, EntryId)>> = BTreeMap::new();
    for round in 0..ROUNDS {
        // Two at a time, of which one is killed while the other goes on.
        let start = |me: String| {
            let role = format!("{}\n{me}\nendless", trial.url());
            common::process(&role).spawn().unwrap()
        };
        let both = [start(format!("{round}-a")), start(format!("{round}-b"))];
        // Killed once it has said so much, in the middle of whatever comes next.
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
            for (id, places) in acknowledged(&output) {
                all.entry(id).or_default().extend(places);
            }
        }
        run(async {
            let store = open(&trial.url()).await;
            for (id, places) in &all {
                let log = log(&store, &session(id)).await;
                for (seq, entry) in places {
                    let kept = log.get(usize::try_from(seq.0).unwrap() - 1);
                    assert_eq!(kept.map(|kept| kept.id), Some(*entry), "{id} {seq}");
                }
            }
            let report = store.check(&|_, _| ()).await.unwrap();
            assert_eq!(report.findings, [], "after round {round}");
            // Entries come in twos: half of an append is never there.
            assert_eq!(report.entries % 2, 0);
        });
    }
    let total: usize = all.values().map(Vec::len).sum();
    assert!(total > 100, "only {total} entries were ever acknowledged");
}
