//! The store in memory passes the suite.

use throughline_store::conformance::Fixture;
use throughline_store::{MemoryStore, conformance};

fn fixture() -> Fixture<MemoryStore> {
    Fixture {
        store: MemoryStore::new(),
        keep: Box::new(()),
    }
}

conformance!(fixture());
