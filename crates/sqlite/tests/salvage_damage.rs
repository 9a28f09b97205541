//! Salvage of files damaged at random.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use common::accounting::assert_all_accounted_for;
use common::sample::{PAGE, entry_ids, run_salvage, sample_store, write_damaged_file};
use common::{findings, logs, run};
use proptest::prelude::*;
use throughline_model::EntryId;
use throughline_store::MemoryStore;

/// Returns the original's entries that are entirely in untouched pages.
fn untouched_entries(damaged: &[u8]) -> BTreeSet<EntryId> {
    static PAGES_OF_ENTRY: OnceLock<BTreeMap<EntryId, Vec<usize>>> = OnceLock::new();
    let (bytes, original) = sample_store();
    let same = |page: usize| {
        let range = page * PAGE..(page + 1) * PAGE;
        damaged.get(range.clone()) == bytes.get(range)
    };
    // Stale copies may remain: an entry counts for every page that has its digest and payload.
    let pages_of = PAGES_OF_ENTRY.get_or_init(|| {
        let mut pages_of: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for entry in original.values().flatten() {
            if entry.payload.len() > 3_000 {
                continue;
            }
            let mut needle = entry.digest.as_bytes().to_vec();
            needle.extend_from_slice(entry.payload.as_bytes());
            let hits = bytes.chunks(PAGE).enumerate().filter(|(_, page)| {
                let mut windows = page.windows(needle.len());
                windows.any(|window| window == needle)
            });
            pages_of.insert(entry.id, hits.map(|(page, _)| page).collect());
        }
        assert!(pages_of.values().all(|pages| !pages.is_empty()));
        pages_of
    });
    let whole = pages_of
        .iter()
        .filter(|(_, pages)| pages.iter().all(|page| same(*page)));
    whole.map(|(id, _)| *id).collect()
}

/// A kind of damage: where, how much, and with which bytes.
#[derive(Clone, Debug)]
enum Damage {
    Overwrite(prop::sample::Index, usize, u64),
    Zero(prop::sample::Index, usize),
    SwapPages(prop::sample::Index, prop::sample::Index),
    Truncate(prop::sample::Index),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), 1..6_000_usize, any::<u64>()).prop_map(|(at, n, seed)| Damage::Overwrite(at, n, seed)),
        2 => (index(), 1..4_usize, any::<u64>()).prop_map(|(at, n, seed)| Damage::Overwrite(at, n, seed)),
        2 => (index(), 1..20_000_usize).prop_map(|(at, n)| Damage::Zero(at, n)),
        1 => (index(), index()).prop_map(|(one, two)| Damage::SwapPages(one, two)),
        1 => index().prop_map(Damage::Truncate),
    ]
}

fn apply_damage(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    match damage {
        Damage::Overwrite(at, count, seed) => {
            let from = at.index(length);
            let to = (from + count).min(length);
            bytes[from..to].copy_from_slice(&common::SeededRng(*seed).bytes(to - from));
        }
        Damage::Zero(at, count) => {
            let from = at.index(length);
            bytes[from..(from + count).min(length)].fill(0);
        }
        Damage::SwapPages(one, two) => {
            let pages = length / PAGE;
            if pages > 0 {
                let (one, two) = (one.index(pages) * PAGE, two.index(pages) * PAGE);
                for offset in 0..PAGE {
                    bytes.swap(one + offset, two + offset);
                }
            }
        }
        Damage::Truncate(at) => bytes.truncate(at.index(length)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_damaged_the_rest_is_salvaged_and_the_loss_is_reported(
        damages in prop::collection::vec(any_damage(), 1..5),
    ) {
        let (_, original) = sample_store();
        let mut bytes = sample_store().0.clone();
        for damage in &damages {
            apply_damage(&mut bytes, damage);
        }
        let (_folder, path) = write_damaged_file(&bytes);
        run(async {
            let into = MemoryStore::default();
            let report = run_salvage(&path, &into).await;
            assert_all_accounted_for(original, &into, &report).await;
            let salvaged = entry_ids(&logs(&into).await.unwrap());
            // Trashed sessions were never compared.
            let whole = untouched_entries(&bytes);
            let missing: Vec<_> = whole.difference(&salvaged).collect();
            assert!(missing.is_empty(), "{missing:?} were readable: {report:?}");
            assert_eq!(findings(&into).await, []);
        });
    }

    #[test]
    fn garbage_is_salvaged_as_nothing(
        mut bytes in prop::collection::vec(any::<u8>(), 0..40_000),
        shaped in any::<bool>(),
    ) {
        if shaped && bytes.len() > 100 {
            bytes[..16].copy_from_slice(b"SQLite format 3\0");
            bytes[16..18].copy_from_slice(&512_u16.to_be_bytes());
            // Pages that claim to hold rows.
            for page in bytes.chunks_mut(512).skip(1) {
                page[0] = [0x0d, 0x0a, 0x02][usize::from(page[0]) % 3];
                if page.len() > 8 {
                    page[3] = 0;
                }
            }
        }
        let (folder, path) = write_damaged_file(&bytes);
        let log: Vec<u8> = bytes.iter().rev().copied().collect();
        std::fs::write(folder.path().join("damaged.db-wal"), log).unwrap();
        run(async {
            let into = MemoryStore::default();
            let report = run_salvage(&path, &into).await;
            assert_eq!(report.entries, 0);
            assert_eq!(findings(&into).await, []);
        });
    }
}
