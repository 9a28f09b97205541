//! Bugs that were found: each as the shortest round that finds it.

use throughline_crash_sim::{
    Action, CallKind, DiskState, DurabilityModel, Fault, Loss, Operation, Record,
};

use crate::acknowledged::Acknowledged;
use crate::check::{Case, Scope, Sent, WORD};
use crate::rounds::{SEARCH, new};
use crate::traced::{Line, Traced};

fn line(number: usize) -> Line {
    Line {
        id: format!("id-{number}"),
        text: format!("{WORD} {number}"),
    }
}

/// Cuts the power after every acknowledgement, with everything lost that was not synced.
fn cut_power_after_acknowledgements(traced: &Traced, sent: &Sent) {
    let trace = traced.trace();
    let mut disk = traced.disk();
    let mut states = 0;
    for (number, record) in trace.records.iter().enumerate() {
        disk.apply(record).unwrap();
        let is_ack = |record: &Record| matches!(record.operation, Operation::Ack { .. });
        // An answer may come in parts.
        if !is_ack(record) || trace.records.get(number + 1).is_some_and(is_ack) {
            continue;
        }
        let acknowledged = Acknowledged::parse(&trace.acknowledged(number + 1));
        let case = Case {
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

/// A writer is killed after it wrote to the log and before it synced it; the next one finds the
/// entry there and must not acknowledge it before it is synced.
#[test]
fn a_retry_is_acknowledged_after_a_sync() {
    for number in 1..=2 {
        let traced = Traced::new(DurabilityModel::Posix);
        let mut sent = Sent::new(&["first"]);
        traced.ok(&new("first"));
        traced.append(&[], "first", &[line(0)], 1);
        let kill = Fault::new(CallKind::Sync, number, Action::KillBefore).in_path("-wal");
        traced.append(&[kill], "first", &[line(1)], 1);
        sent.session("first").lines = vec![line(0), line(1)];
        traced.append(&[], "first", &[line(1)], 1);
        cut_power_after_acknowledgements(&traced, &sent);
    }
}

/// The same for a session that another process was killed while making.
#[test]
fn an_existing_session_is_acknowledged_after_a_sync() {
    for number in 1..=2 {
        let traced = Traced::new(DurabilityModel::Posix);
        traced.ok(&new("second"));
        let args = new("first");
        let kill = Fault::new(CallKind::Sync, number, Action::KillBefore).in_path("-wal");
        traced.tl(&[kill], &args);
        traced.ok(&args);
        traced.ok(&args);
        cut_power_after_acknowledgements(&traced, &Sent::new(&["first", "second"]));
    }
}

/// The disk fails while a commit is synced. The next process may find the commit in the log, so
/// the outcome is not known; any other error means that nothing was stored.
#[test]
fn an_append_whose_sync_fails_is_not_said_to_be_refused() {
    let mut unknown = 0;
    for number in 1..=3 {
        let traced = Traced::new(DurabilityModel::Posix);
        traced.ok(&new("first"));
        traced.append(&[], "first", &[line(0)], 1);
        let fault = Fault::new(CallKind::Sync, number, Action::Eio).in_path("-wal");
        let failed = traced.append(&[fault], "first", &[line(1)], 1);
        let said = String::from_utf8_lossy(&failed.stderr);
        let stored = traced.tl(&[], &["show", "first", "--json"]);
        let is_stored = String::from_utf8_lossy(&stored.stdout).contains(&line(1).text);
        if failed.status.success() {
            assert!(is_stored, "sync {number}");
        } else if said.contains("is not known") {
            unknown += 1;
        } else {
            assert!(!is_stored, "sync {number}: {said}");
        }
        let repeated = traced.append(&[], "first", &[line(1)], 1);
        assert!(repeated.status.success(), "sync {number}");
    }
    assert!(unknown > 0);
}

/// A search is killed after it wrote a segment's deletes and before it committed them.
#[test]
fn a_kill_between_deletes_and_commit_does_not_break_the_index() {
    for action in [Action::KillBefore, Action::KillAfter] {
        let traced = Traced::new(DurabilityModel::Posix);
        let mut sent = Sent::new(&["first"]);
        traced.ok(&new("first"));
        let lines: Vec<Line> = (0..4).map(line).collect();
        traced.append(&[], "first", &lines, 4);
        traced.ok(&SEARCH);
        sent.session("first").lines = lines;
        sent.session("first").erased.insert(2, traced.position());
        traced.ok(&["erase", "first", "2", "--yes", "--json"]);
        let kill = Fault::new(CallKind::Sync, 1, action).in_path(".del");
        let killed = traced.tl(&[kill], &SEARCH);
        assert_eq!(killed.status.code(), Some(137), "the kill did not happen");
        let trace = traced.trace();
        let state = DiskState::read(&traced.root()).unwrap();
        let acknowledged = Acknowledged::parse(&trace.acknowledged(trace.records.len()));
        let case = Case {
            state: &state,
            acknowledged: &acknowledged,
            sent: &sent,
            after: trace.records.len(),
        };
        case.check(Scope::StoreAndIndex).unwrap();
        case.check_with_program().unwrap();
        // With nothing new to index, the same files are written again, under the same names.
        traced.ok(&SEARCH);
    }
}
