//! Calls that fail: nothing is acknowledged wrongly, nothing panics, the error says what is wrong,
//! and once calls no longer fail all is well.

use std::process::Output;
use std::slice::from_ref;

use throughline_crash_sim::{Action, CallKind, DiskState, DurabilityModel, Fault, Operation, Rng};
use throughline_store::conformance::torture::TortureBudget;

use crate::acknowledged::Acknowledged;
use crate::check::{Case, Scope, Sent};
use crate::rounds::{SEARCH, lines, new};
use crate::served::Served;
use crate::traced::Traced;
use crate::{Counts, cut_power};

/// How often the writes of a server may fail before somebody gives up on it.
const PATIENCE: usize = 60;

/// A call that fails, once or more often.
fn some_fault(rng: &mut Rng, path: &'static str) -> Fault {
    let action = [Action::Eio, Action::Enospc][rng.below(2)];
    let fault = match rng.below(9) {
        0 | 1 => Fault::new(CallKind::Sync, 1 + rng.below(8), action),
        2 | 3 => Fault::new(CallKind::Write, 1 + rng.below(30), action),
        4 => Fault::new(CallKind::Write, 1 + rng.below(30), Action::Short),
        5 => Fault::new(CallKind::Create, 1 + rng.below(4), action),
        6 => Fault::new(CallKind::Truncate, 1 + rng.below(3), action),
        7 => Fault::new(CallKind::Unlink, 1 + rng.below(3), action),
        _ => Fault::new(CallKind::Any, 1 + rng.below(50), action),
    };
    let fault = fault.in_path(path);
    match rng.below(3) {
        0 => fault,
        1 => fault.times(2 + rng.below(20)),
        _ => fault.from_then_on(),
    }
}

/// A command that fails says why.
fn has_explained_itself(output: &Output, fault: &Fault) {
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(
        code.is_some_and(|code| code < 100),
        "{fault}: {code:?} {said}"
    );
    assert!(
        output.status.success() || said.contains("error"),
        "{fault}: {code:?} {said:?}"
    );
}

/// Checks the home as it is, with everything sent again.
fn is_well(traced: &Traced, sent: &Sent, scope: Scope, fault: &Fault, counts: &mut Counts) {
    let trace = traced.trace();
    let state = DiskState::read(&traced.root()).unwrap();
    let acknowledged = Acknowledged::parse(&trace.acknowledged(trace.records.len()));
    counts.acknowledgements += acknowledged.count();
    counts.states += 1;
    let case = Case {
        state: &state,
        acknowledged: &acknowledged,
        sent,
        after: trace.records.len(),
    };
    if let Err(wrong) = case.check(scope) {
        panic!("{wrong}, after {fault}");
    }
}

/// Whether a process ended while syncs failed. The next one then finds in the log what was written and
/// not synced, and no later sync makes it durable: the system has forgotten that it must be
/// written. Nothing is promised for a power cut after that.
fn lost_a_sync(traced: &Traced, fault: &Fault) -> bool {
    let records = traced.trace().records;
    let mut syncs = records.iter().map(|record| &record.operation);
    fault.last > fault.number && syncs.any(|sync| *sync == Operation::Sync { failed: true })
}

/// One round: a command whose calls fail, then the same without.
fn command_round(seed: u64, counts: &mut Counts) {
    let rng = &mut Rng::new(seed);
    let traced = Traced::new(DurabilityModel::Posix);
    let mut sent = Sent::new(&["first"]);
    let new = new("first");
    let all = lines(rng, "f", 12);
    sent.session("first").lines.clone_from(&all);
    let fault = match rng.below(4) {
        0 => {
            let fault = some_fault(rng, "");
            has_explained_itself(&traced.tl(from_ref(&fault), &new), &fault);
            fault
        }
        1 => {
            traced.ok(&new);
            traced.append(&[], "first", &all[..6], 6);
            let fault = some_fault(rng, "sessions.index");
            has_explained_itself(&traced.tl(from_ref(&fault), &SEARCH), &fault);
            fault
        }
        _ => {
            traced.ok(&new);
            let fault = if rng.one_in(10) {
                Fault::new(CallKind::Ack, 1 + rng.below(6), Action::Eio)
            } else {
                let path = ["-wal", "", "sessions.db"][rng.below(3)];
                some_fault(rng, path)
            };
            let output = traced.append(from_ref(&fault), "first", &all, 1 + rng.below(4));
            has_explained_itself(&output, &fault);
            let answered = output.stdout.split(|byte| *byte == b'\n').count() - 1;
            if output.status.success() {
                assert_eq!(answered, all.len(), "{fault}");
            }
            fault
        }
    };
    is_well(&traced, &sent, Scope::StoreAndIndex, &fault, counts);
    traced.ok(&new);
    let output = traced.append(&[], "first", &all, 4);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "after {fault}: {failed}");
    traced.ok(&SEARCH);
    if !lost_a_sync(&traced, &fault) {
        cut_power(&traced, &sent, Scope::StoreAndIndex, seed, 12, counts);
    }
}

#[test]
fn commands_whose_calls_fail_acknowledge_nothing_wrong() {
    let budget = TortureBudget::from_env(30, 18);
    let mut counts = Counts::default();
    for number in (0..).take_while(|number| budget.allows(*number)) {
        command_round(budget.seed.wrapping_add(number), &mut counts);
        counts.rounds += 1;
    }
    counts.print("failing commands", budget.seed);
}

/// One round: a server some of whose calls fail for a while, and which then works again.
fn server_round(rng: &mut Rng, fault: &Fault, counts: &mut Counts) {
    let traced = Traced::new(DurabilityModel::Posix);
    let mut sent = Sent::new(&["first"]);
    traced.ok(&new("first"));
    let all = lines(rng, "s", 16);
    sent.session("first").lines.clone_from(&all);
    let mut attempts = 0;
    let mut last = serde_json::Value::Null;
    let mut groups = all.chunks(2);
    let mut group = groups.next();
    let mut served = Served::start(&traced, from_ref(fault));
    while let Some(lines) = group {
        attempts += 1;
        assert!(
            attempts < PATIENCE,
            "the server does not recover from {fault}: {last}"
        );
        let Some(running) = &served else {
            // It could not even start.
            served = Served::start(&traced, &[]);
            continue;
        };
        match running.append("first", lines) {
            Some((200 | 201, _)) => group = groups.next(),
            Some((status, problem)) => {
                assert!((500..600).contains(&status), "{fault}: {status} {problem}");
                assert!(problem["detail"].is_string(), "{fault}: {problem}");
                last = problem;
            }
            None => panic!("{fault}: no answer"),
        }
    }
    if let Some(served) = served {
        served.stop();
    }
    is_well(&traced, &sent, Scope::Store, fault, counts);
    if !lost_a_sync(&traced, fault) {
        cut_power(&traced, &sent, Scope::Store, rng.next_u64(), 40, counts);
    }
}

#[test]
fn a_server_whose_calls_fail_recovers() {
    let budget = TortureBudget::from_env(12, 18);
    let mut counts = Counts::default();
    for number in (0..).take_while(|number| budget.allows(*number)) {
        let rng = &mut Rng::new(budget.seed.wrapping_add(number));
        let path = ["-wal", "sessions.db"][rng.below(2)];
        let mut fault = some_fault(rng, path);
        fault.last = fault.last.min(fault.number + 20);
        server_round(rng, &fault, &mut counts);
        counts.rounds += 1;
    }
    counts.print("failing server", budget.seed);
}

/// The connection that writes could open the log for reading only, and stayed like that.
#[test]
fn a_server_that_could_not_open_its_log_recovers() {
    let fault = Fault::new(CallKind::Create, 2, Action::Enospc).in_path("-wal");
    server_round(&mut Rng::new(18), &fault.times(3), &mut Counts::default());
}
