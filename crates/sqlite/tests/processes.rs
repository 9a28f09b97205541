//! Several processes append to one file at once.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::path::Path;

use common::{open, run};
use throughline_store::conformance::processes::{
    ConsistentAppends, append_concurrently, print_line, role,
};

/// Runs the child process's part.
#[test]
fn child() {
    let Some(role) = role() else {
        return;
    };
    let [path, me] = &role[..] else {
        panic!("{role:?}");
    };
    run(async {
        // Nobody created the store beforehand: all of them do, at once.
        let store = open(Path::new(path));
        append_concurrently(&store, me).await;
        print_line("done");
    });
}

fn append_from_processes(processes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let together =
        ConsistentAppends::run(processes, |number| format!("{}\n{number}", path.display()));
    run(async { together.assert_stored(&open(&path)).await });
}

#[test]
fn two_processes_lose_nothing_and_number_densely() {
    append_from_processes(2);
}

#[test]
fn eight_processes_lose_nothing_and_number_densely() {
    append_from_processes(8);
}
