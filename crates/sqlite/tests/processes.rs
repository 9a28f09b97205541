//! Several processes append to one file at once.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::Path;

use common::{open, run};
use throughline_store::conformance::processes::{Together, append_among_others, role, say};

/// Does what this process was started for.
#[test]
fn child() {
    let Some(role) = role() else {
        return;
    };
    let [path, me] = &role[..] else {
        panic!("{role:?}");
    };
    run(async {
        // Nobody made the store beforehand: all do, at once.
        let store = open(Path::new(path));
        append_among_others(&store, me).await;
        say("done");
    });
}

fn together(processes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let together = Together::run(processes, |number| format!("{}\n{number}", path.display()));
    run(async { together.is_all_there(&open(&path)).await });
}

#[test]
fn two_processes_lose_nothing_and_number_densely() {
    together(2);
}

#[test]
fn eight_processes_lose_nothing_and_number_densely() {
    together(8);
}
