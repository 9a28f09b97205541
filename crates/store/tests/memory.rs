//! Runs the conformance suite on the in-memory store.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use throughline_model::Timestamp;
use throughline_store::conformance::{Fixture, at};
use throughline_store::{MemoryStore, clock_conformance, conformance};

fn fixture() -> Fixture<MemoryStore> {
    Fixture {
        store: MemoryStore::new(),
        guard: Box::new(()),
    }
}

conformance!(fixture());

type Clock = Arc<Mutex<Timestamp>>;

fn with_clock() -> Fixture<MemoryStore> {
    let clock: Clock = Arc::new(Mutex::new(at(0)));
    let now = Arc::clone(&clock);
    Fixture {
        store: MemoryStore::with_clock(move || *now.lock().unwrap()),
        guard: Box::new(clock),
    }
}

fn set_clock_back(fixture: &Fixture<MemoryStore>, by: Duration) -> std::future::Ready<()> {
    let clock: &Clock = fixture.guard.downcast_ref().unwrap();
    let mut now = clock.lock().unwrap();
    *now = now.checked_sub(by).unwrap();
    std::future::ready(())
}

clock_conformance!(with_clock(), set_clock_back);
