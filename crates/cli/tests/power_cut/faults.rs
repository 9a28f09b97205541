//! Failing system calls: nothing is acknowledged wrongly, nothing panics, errors name the
//! cause, and everything works again once calls succeed.

use std::process::Output;
use std::slice::from_ref;

use throughline_crash_sim::{
    DiskState, DurabilityModel, Fault, FaultAction, Operation, Rng, SyscallKind,
};
use throughline_store::conformance::torture::TortureBudget;

use crate::acknowledgements::Acknowledgements;
use crate::check::{CrashCase, Scope, Workload};
use crate::recorded_server::RecordedServer;
use crate::rounds::{SEARCH_ARGS, new_session_args, random_lines};
use crate::traced_home::TracedHome;
use crate::{RunCounts, cut_power};

/// How often a server's writes may fail before the test gives up.
const MAX_ATTEMPTS: usize = 60;

/// A random call that fails, once or more often.
fn random_fault(rng: &mut Rng, path: &'static str) -> Fault {
    let action = [FaultAction::Eio, FaultAction::Enospc][rng.below(2)];
    let fault = match rng.below(9) {
        0 | 1 => Fault::new(SyscallKind::Sync, 1 + rng.below(8), action),
        2 | 3 => Fault::new(SyscallKind::Write, 1 + rng.below(30), action),
        4 => Fault::new(SyscallKind::Write, 1 + rng.below(30), FaultAction::Short),
        5 => Fault::new(SyscallKind::Create, 1 + rng.below(4), action),
        6 => Fault::new(SyscallKind::Truncate, 1 + rng.below(3), action),
        7 => Fault::new(SyscallKind::Unlink, 1 + rng.below(3), action),
        _ => Fault::new(SyscallKind::Any, 1 + rng.below(50), action),
    };
    let fault = fault.in_path(path);
    match rng.below(3) {
        0 => fault,
        1 => fault.times(2 + rng.below(20)),
        _ => fault.repeating(),
    }
}

/// Asserts that a failed command explains why.
fn assert_explained(output: &Output, fault: &Fault) {
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
fn assert_sound(
    traced: &TracedHome,
    sent: &Workload,
    scope: Scope,
    fault: &Fault,
    counts: &mut RunCounts,
) {
    let trace = traced.trace();
    let state = DiskState::read(&traced.root()).unwrap();
    let acknowledged = Acknowledgements::parse(&trace.acknowledged_output(trace.records.len()));
    counts.acknowledgements += acknowledged.count();
    counts.states += 1;
    let case = CrashCase {
        state: &state,
        acknowledged: &acknowledged,
        sent,
        after: trace.records.len(),
    };
    if let Err(wrong) = case.check(scope) {
        panic!("{wrong}, after {fault}");
    }
}

/// Whether a process ended while syncs failed. The next process then finds written but
/// unsynced data in the log, and no later sync makes it durable, since the kernel no longer
/// considers it dirty. Nothing is guaranteed for a power cut after that.
fn lost_a_sync(traced: &TracedHome, fault: &Fault) -> bool {
    let records = traced.trace().records;
    let mut syncs = records.iter().map(|record| &record.operation);
    fault.last > fault.first && syncs.any(|sync| *sync == Operation::Sync { failed: true })
}

/// One round: a command whose calls fail, then the same without faults.
fn command_round(seed: u64, counts: &mut RunCounts) {
    let rng = &mut Rng::new(seed);
    let traced = TracedHome::new(DurabilityModel::Posix);
    let mut sent = Workload::new(&["first"]);
    let new = new_session_args("first");
    let all = random_lines(rng, "f", 12);
    sent.session("first").lines.clone_from(&all);
    let fault = match rng.below(4) {
        0 => {
            let fault = random_fault(rng, "");
            assert_explained(&traced.run(from_ref(&fault), &new), &fault);
            fault
        }
        1 => {
            traced.run_ok(&new);
            traced.append(&[], "first", &all[..6], 6);
            let fault = random_fault(rng, "sessions.index");
            assert_explained(&traced.run(from_ref(&fault), &SEARCH_ARGS), &fault);
            fault
        }
        _ => {
            traced.run_ok(&new);
            let fault = if rng.one_in(10) {
                Fault::new(SyscallKind::Ack, 1 + rng.below(6), FaultAction::Eio)
            } else {
                let path = ["-wal", "", "sessions.db"][rng.below(3)];
                random_fault(rng, path)
            };
            let output = traced.append(from_ref(&fault), "first", &all, 1 + rng.below(4));
            assert_explained(&output, &fault);
            let answered = output.stdout.split(|byte| *byte == b'\n').count() - 1;
            if output.status.success() {
                assert_eq!(answered, all.len(), "{fault}");
            }
            fault
        }
    };
    assert_sound(&traced, &sent, Scope::StoreAndIndex, &fault, counts);
    traced.run_ok(&new);
    let output = traced.append(&[], "first", &all, 4);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "after {fault}: {failed}");
    traced.run_ok(&SEARCH_ARGS);
    if !lost_a_sync(&traced, &fault) {
        cut_power(&traced, &sent, Scope::StoreAndIndex, seed, 12, counts);
    }
}

#[test]
fn commands_whose_calls_fail_acknowledge_nothing_wrong() {
    let budget = TortureBudget::from_env(30, 18);
    let mut counts = RunCounts::default();
    for number in (0..).take_while(|number| budget.allows_round(*number)) {
        command_round(budget.seed.wrapping_add(number), &mut counts);
        counts.rounds += 1;
    }
    counts.print("failing commands", budget.seed);
}

/// One round: a server some of whose calls fail for a while, and which then recovers.
fn server_round(rng: &mut Rng, fault: &Fault, counts: &mut RunCounts) {
    let traced = TracedHome::new(DurabilityModel::Posix);
    let mut sent = Workload::new(&["first"]);
    traced.run_ok(&new_session_args("first"));
    let all = random_lines(rng, "s", 16);
    sent.session("first").lines.clone_from(&all);
    let mut attempts = 0;
    let mut last = serde_json::Value::Null;
    let mut groups = all.chunks(2);
    let mut group = groups.next();
    let mut served = RecordedServer::start(&traced, from_ref(fault));
    while let Some(lines) = group {
        attempts += 1;
        assert!(
            attempts < MAX_ATTEMPTS,
            "the server does not recover from {fault}: {last}"
        );
        let Some(running) = &served else {
            // It could not even start.
            served = RecordedServer::start(&traced, &[]);
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
    assert_sound(&traced, &sent, Scope::Store, fault, counts);
    if !lost_a_sync(&traced, fault) {
        cut_power(&traced, &sent, Scope::Store, rng.next_u64(), 40, counts);
    }
}

#[test]
fn a_server_whose_calls_fail_recovers() {
    let budget = TortureBudget::from_env(12, 18);
    let mut counts = RunCounts::default();
    for number in (0..).take_while(|number| budget.allows_round(*number)) {
        let rng = &mut Rng::new(budget.seed.wrapping_add(number));
        let path = ["-wal", "sessions.db"][rng.below(2)];
        let mut fault = random_fault(rng, path);
        fault.last = fault.last.min(fault.first + 20);
        server_round(rng, &fault, &mut counts);
        counts.rounds += 1;
    }
    counts.print("failing server", budget.seed);
}

/// The writing connection could open the log only for reading, and stayed that way.
#[test]
fn a_server_that_could_not_open_its_log_recovers() {
    let fault = Fault::new(SyscallKind::Create, 2, FaultAction::Enospc).in_path("-wal");
    server_round(
        &mut Rng::new(18),
        &fault.times(3),
        &mut RunCounts::default(),
    );
}
