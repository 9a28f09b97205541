//! Fuzz target: the salvage reader, on damaged main files and write-ahead logs.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs;
use std::path::Path;

use common::accounting::assert_all_accounted_for;
use common::sample::{
    Logs, PAGE, create_sample_store, run_salvage, sample_store, write_damaged_file,
};
use common::{findings, logs, run};
use throughline_fuzz::{Case, Choices, Input, Target, fuzz, mutate};
use throughline_store::{MemoryStore, Store};

/// The lengths of a frame header and of the file header in a write-ahead log.
const FRAME_HEADER: usize = 24;
const WAL_HEADER: usize = 32;
const FRAME: usize = FRAME_HEADER + PAGE;

/// Changes the header, the order or the pages of a write-ahead log.
fn mutate_wal_frames(
    mut log: Vec<u8>,
    others: &[Vec<u8>],
    by: &mut Choices<'_>,
) -> Option<Vec<u8>> {
    let frames = log.len().saturating_sub(WAL_HEADER) / FRAME;
    if frames == 0 {
        return mutate::bytes(log, others, by);
    }
    let frame = WAL_HEADER + by.below(frames)? * FRAME;
    match by.below(8)? {
        0 => {
            let at = by.below(WAL_HEADER)?;
            log[at] = *by.pick(&[0, 1, 2, 0x10, 0x7f, 0x80, 0xff])?;
        }
        // Page number, page count, salts, checksums.
        1 | 2 => {
            let at = frame + by.below(FRAME_HEADER)?;
            log[at] = *by.pick(&[0, 1, 2, 9, 0x7f, 0x80, 0xff])?;
        }
        3 => {
            let other = WAL_HEADER + by.below(frames)? * FRAME;
            log.copy_within(other..other + FRAME, frame);
        }
        4 => log.truncate(frame + by.below(FRAME)?),
        5 => drop(log.drain(frame..frame + FRAME)),
        _ => {
            // The page inside the frame.
            let page = frame + FRAME_HEADER..frame + FRAME;
            let changed = mutate::pages::<PAGE>(log[page.clone()].to_vec(), &[], by)?;
            log.splice(page, changed);
        }
    }
    Some(log)
}

/// Returns the main file, the log and the contents of a store whose newest entries are only in
/// its log.
fn store_with_unmerged_wal() -> (Vec<u8>, Vec<u8>, Logs) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = create_sample_store(&path).await;
        let file = fs::read(&path).unwrap();
        let log = fs::read(path.with_extension("db-wal")).unwrap();
        (file, log, logs(&store).await.unwrap())
    })
}

fn case(name: &str, seed: Vec<u8>, mutation: mutate::Mutation) -> Case {
    Case {
        name: name.to_owned(),
        seeds: vec![seed],
        mutation,
    }
}

#[test]
fn salvage() {
    let (bytes, original) = sample_store();
    let (file, log, unfinished) = store_with_unmerged_wal();
    let cases = vec![
        case("main", bytes.clone(), mutate::pages::<PAGE>),
        case("log", log, mutate_wal_frames),
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz_corpus");
    // Memory holds the whole file and the store it is salvaged into.
    let target = Target::new("salvage", &corpus, cases)
        .with_memory_limit((64 << 20, 400))
        .with_mutations(100);
    fuzz!(target, |input: &Input| {
        let main = if input.case == 0 { &input.bytes } else { &file };
        let (_folder, path) = write_damaged_file(main);
        if input.case == 1 {
            fs::write(path.with_extension("db-wal"), &input.bytes).unwrap();
        }
        run(async {
            let into = MemoryStore::default();
            let report = run_salvage(&path, &into).await;
            if input.case == 0 {
                assert_all_accounted_for(original, &into, &report).await;
            } else {
                assert_nothing_invented(&unfinished, &into, report.unverified).await;
            }
            assert_eq!(findings(&into).await, []);
        });
        assert_eq!(&fs::read(&path).unwrap(), main, "the file was changed");
    });
}

/// Asserts that everything salvaged was stored, except for what is counted as unverified. A
/// truncated log is a store at an earlier time, so entries may be missing without a note.
async fn assert_nothing_invented(original: &Logs, into: &dyn Store, unverified: u64) {
    let stored: std::collections::BTreeMap<_, _> = original
        .values()
        .flatten()
        .map(|entry| (entry.id, &entry.payload))
        .collect();
    let mut different = 0;
    for entry in logs(into).await.unwrap().values().flatten() {
        let is_lost = entry.decode().unwrap().body == throughline_model::Body::Lost;
        let is_same = stored
            .get(&entry.id)
            .is_some_and(|payload| **payload == entry.payload);
        // Trashed sessions are not among the original's logs.
        let is_known = stored.contains_key(&entry.id);
        different += u64::from(!is_lost && is_known && !is_same);
    }
    // One entry was erased, and is whole in an earlier version of the store.
    assert!(
        different <= unverified + 1,
        "{different} differ, {unverified} are unverified"
    );
}
