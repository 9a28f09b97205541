//! Regression tests: each is the shortest round that reproduces a bug.

use throughline_crash_sim::{
    DiskState, DurabilityModel, Fault, FaultAction, Loss, Operation, Record, SyscallKind,
};

use crate::acknowledgements::Acknowledgements;
use crate::check::{CrashCase, SEARCH_WORD, Scope, Workload};
use crate::rounds::{SEARCH_ARGS, new_session_args};
use crate::traced_home::{MessageLine, TracedHome};

fn numbered_line(number: usize) -> MessageLine {
    MessageLine {
        id: format!("id-{number}"),
        text: format!("{SEARCH_WORD} {number}"),
    }
}

/// Cuts the power after every acknowledgement, losing everything that was not synced.
fn cut_power_after_acknowledgements(traced: &TracedHome, sent: &Workload) {
    let trace = traced.trace();
    let mut disk = traced.disk();
    let mut states = 0;
    for (number, record) in trace.records.iter().enumerate() {
        disk.apply(record).unwrap();
        let is_ack = |record: &Record| matches!(record.operation, Operation::Ack { .. });
        // A response may be written in parts.
        if !is_ack(record) || trace.records.get(number + 1).is_some_and(is_ack) {
            continue;
        }
        let acknowledged = Acknowledgements::parse(&trace.acknowledged_output(number + 1));
        let case = CrashCase {
            state: &disk.after_loss(&Loss::Everything),
            acknowledged: &acknowledged,
            sent,
            after: number + 1,
        };
        if let Err(wrong) = case.check(Scope::Store) {
            panic!("{wrong}, after\n{}", trace.context(number + 1));
        }
        states += 1;
    }
    assert!(states > 1);
}

/// A writer is killed after writing to the log and before syncing it; the next one finds
/// the entry there and must not acknowledge it before it is synced.
#[test]
fn a_retry_is_acknowledged_after_a_sync() {
    for number in 1..=2 {
        let traced = TracedHome::new(DurabilityModel::Posix);
        let mut sent = Workload::new(&["first"]);
        traced.run_ok(&new_session_args("first"));
        traced.append(&[], "first", &[numbered_line(0)], 1);
        let kill = Fault::new(SyscallKind::Sync, number, FaultAction::KillBefore).in_path("-wal");
        traced.append(&[kill], "first", &[numbered_line(1)], 1);
        sent.session("first").lines = vec![numbered_line(0), numbered_line(1)];
        traced.append(&[], "first", &[numbered_line(1)], 1);
        cut_power_after_acknowledgements(&traced, &sent);
    }
}

/// The same for a session that another process was killed while creating.
#[test]
fn an_existing_session_is_acknowledged_after_a_sync() {
    for number in 1..=2 {
        let traced = TracedHome::new(DurabilityModel::Posix);
        traced.run_ok(&new_session_args("second"));
        let args = new_session_args("first");
        let kill = Fault::new(SyscallKind::Sync, number, FaultAction::KillBefore).in_path("-wal");
        traced.run(&[kill], &args);
        traced.run_ok(&args);
        traced.run_ok(&args);
        cut_power_after_acknowledgements(&traced, &Workload::new(&["first", "second"]));
    }
}

/// The disk fails while a commit is synced. The next process may find the commit in the
/// log, so the outcome is unknown; any other error means that nothing was stored.
#[test]
fn an_append_whose_sync_fails_is_not_said_to_be_refused() {
    let mut unknown = 0;
    for number in 1..=3 {
        let traced = TracedHome::new(DurabilityModel::Posix);
        traced.run_ok(&new_session_args("first"));
        traced.append(&[], "first", &[numbered_line(0)], 1);
        let fault = Fault::new(SyscallKind::Sync, number, FaultAction::Eio).in_path("-wal");
        let failed = traced.append(&[fault], "first", &[numbered_line(1)], 1);
        let said = String::from_utf8_lossy(&failed.stderr);
        let stored = traced.run(&[], &["show", "first", "--json"]);
        let is_stored = String::from_utf8_lossy(&stored.stdout).contains(&numbered_line(1).text);
        if failed.status.success() {
            assert!(is_stored, "sync {number}");
        } else if said.contains("it is unknown whether") {
            unknown += 1;
        } else {
            assert!(!is_stored, "sync {number}: {said}");
        }
        let repeated = traced.append(&[], "first", &[numbered_line(1)], 1);
        assert!(repeated.status.success(), "sync {number}");
    }
    assert!(unknown > 0);
}

/// A search is killed after it wrote a segment's deletes and before it committed them.
#[test]
fn a_kill_between_deletes_and_commit_does_not_break_the_index() {
    for action in [FaultAction::KillBefore, FaultAction::KillAfter] {
        let traced = TracedHome::new(DurabilityModel::Posix);
        let mut sent = Workload::new(&["first"]);
        traced.run_ok(&new_session_args("first"));
        let lines: Vec<MessageLine> = (0..4).map(numbered_line).collect();
        traced.append(&[], "first", &lines, 4);
        traced.run_ok(&SEARCH_ARGS);
        sent.session("first").lines = lines;
        sent.session("first").erased.insert(2, traced.position());
        traced.run_ok(&["erase", "first", "2", "--yes", "--json"]);
        let kill = Fault::new(SyscallKind::Sync, 1, action).in_path(".del");
        let killed = traced.run(&[kill], &SEARCH_ARGS);
        assert_eq!(killed.status.code(), Some(137), "the kill did not happen");
        let trace = traced.trace();
        let state = DiskState::read(&traced.root()).unwrap();
        let acknowledged = Acknowledgements::parse(&trace.acknowledged_output(trace.records.len()));
        let case = CrashCase {
            state: &state,
            acknowledged: &acknowledged,
            sent: &sent,
            after: trace.records.len(),
        };
        case.check(Scope::StoreAndIndex).unwrap();
        case.check_with_program().unwrap();
        // With nothing new to index, the same files are written again, under the same names.
        traced.run_ok(&SEARCH_ARGS);
    }
}
