//! Helpers shared by the fault tests: filled stores and a seeded random generator.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

pub(crate) mod accounting;
pub(crate) mod sample;

use std::collections::BTreeMap;
use std::path::Path;

use throughline_model::{SessionId, SessionRef, StoredEntry};
use throughline_sqlite::{Options, SqliteStore};
pub(crate) use throughline_store::conformance::processes::{
    append, child_process, child_process_under, named_entry, parse_acknowledgements,
    print_acknowledgement, print_line, program_process_under, read_log, role, session,
};
pub(crate) use throughline_store::conformance::{at, header, owner, run};
use throughline_store::{
    Append, CheckReport, Finding, LogStore, SessionFilter, SessionScope, Store, StoreError,
};

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Options::default()).expect("the store opens")
}

/// Creates a session with `count` entries of about that many bytes.
pub(crate) async fn fill_session(
    store: &SqliteStore,
    id: &str,
    entries: usize,
    bytes: usize,
) -> SessionRef {
    let to = session(id);
    store.create(&owner(), header(id)).await.expect("created");
    let new = (0..entries).map(|n| {
        let name = format!("{id}-{n}");
        named_entry(&name, &format!("{name} {}", "x".repeat(bytes)))
    });
    let append = Append::unconditional(new.collect());
    store.append(&to, append).await.expect("appended");
    to
}

/// Returns the logs of all live sessions, by owner and id.
pub(crate) async fn logs(
    store: &dyn Store,
) -> Result<BTreeMap<(String, SessionId), Vec<StoredEntry>>, StoreError> {
    let mut logs = BTreeMap::new();
    for owner in store.owners().await? {
        let infos = store
            .list(&owner, &SessionFilter::default(), None, 10_000)
            .await?
            .items;
        for info in infos {
            let log = read_log(store, &owner.session(&info.id)).await?;
            logs.insert((owner.to_string(), info.id), log);
        }
    }
    Ok(logs)
}

/// A filter for the sessions in the trash.
pub(crate) fn trash_filter() -> SessionFilter {
    SessionFilter {
        scope: SessionScope::Trash,
        ..SessionFilter::default()
    }
}

pub(crate) async fn check(store: &dyn Store) -> CheckReport {
    store.check(&|_, _| ()).await.expect("checked")
}

pub(crate) async fn findings(store: &dyn Store) -> Vec<Finding> {
    check(store).await.findings
}

/// A random generator with a fixed seed.
pub(crate) struct SeededRng(pub(crate) u64);

impl SeededRng {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| u8::try_from(self.below(256)).expect("a byte"))
            .collect()
    }
}
