//! A process is killed while it appends: everything it acknowledged is still there.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use common::{
    SeededRng, check, header, named_entry, open, parse_acknowledgements, print_acknowledgement,
    read_log, run, session,
};
use throughline_model::{EntryId, Seq};
use throughline_store::conformance::torture::TortureBudget;
use throughline_store::{Append, LogStore};

const SESSIONS: [&str; 4] = ["red", "green", "blue", "grey"];
const ROUNDS: u64 = 36;

/// Appends until the process is killed.
#[test]
fn child() {
    let Some(role) = common::role() else {
        return;
    };
    let (path, round) = (Path::new(&role[0]), &role[1]);
    run(async {
        let store = open(path);
        let write = async |id: &str| {
            let to = session(id);
            store.create(&to.owner, header(id)).await.unwrap();
            for count in 0.. {
                let name = format!("{round}-{id}-{count}");
                // Some are longer than a page.
                let bytes = if count % 16 == 0 { 9_000 } else { 100 };
                let new = vec![
                    named_entry(&format!("{name}-a"), &name.repeat(2)),
                    named_entry(&format!("{name}-b"), &"y".repeat(bytes)),
                ];
                let appended = store.append(&to, Append::unconditional(new)).await.unwrap();
                for entry in appended.entries {
                    print_acknowledgement(&to, entry.seq, entry.id);
                }
            }
        };
        tokio::join!(
            write(SESSIONS[0]),
            write(SESSIONS[1]),
            write(SESSIONS[2]),
            write(SESSIONS[3]),
        );
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let budget = TortureBudget::from_env(ROUNDS, 7);
    let mut rng = SeededRng(budget.seed);
    let mut all: BTreeMap<String, Vec<(Seq, EntryId)>> = BTreeMap::new();
    let (mut kills, mut total) = (0, 0);
    for round in (0..).take_while(|round| budget.allows_round(*round)) {
        if round % ROUNDS == 0 {
            // Starts a new store now and then, so that checking a long run does not get slower.
            total += all.values().map(Vec::len).sum::<usize>();
            all.clear();
        }
        kills += 1;
        let path = folder
            .path()
            .join(format!("sessions-{}.db", round / ROUNDS));
        let role = format!("{}\n{round}", path.display());
        let mut process = common::child_process(&role).spawn().unwrap();
        let patience = if round % 3 == 0 { 30 } else { 200 };
        std::thread::sleep(Duration::from_millis(3 + rng.below(patience)));
        process.kill().unwrap();
        let mut output = Vec::new();
        process
            .stdout
            .take()
            .unwrap()
            .read_to_end(&mut output)
            .unwrap();
        process.wait().unwrap();
        for (id, acknowledged) in parse_acknowledgements(&output) {
            all.entry(id).or_default().extend(acknowledged);
        }

        run(async {
            let store = open(&path);
            for (id, acknowledged) in &all {
                let log = read_log(&store, &session(id)).await.unwrap();
                assert!(acknowledged.is_sorted(), "acknowledged out of order");
                for (seq, entry) in acknowledged {
                    let stored = log.get(usize::try_from(seq.0).unwrap() - 1);
                    assert_eq!(stored.map(|stored| stored.id), Some(*entry), "{id} {seq}");
                }
            }
            let report = check(&store).await;
            assert_eq!(report.findings, [], "after round {round}");
            // Entries come in pairs: half of an append is never stored.
            assert_eq!(report.entries % 2, 0);
        });
    }
    total += all.values().map(Vec::len).sum::<usize>();
    println!(
        "{kills} kills, {total} acknowledged entries checked, seed {}",
        budget.seed
    );
    assert!(total > 200, "only {total} entries were ever acknowledged");
}
