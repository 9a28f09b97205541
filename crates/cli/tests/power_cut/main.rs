//! Power-cut tests: records the real program, then simulates a power cut at every
//! interesting moment.
//!
//! Each round records what `tl` does to its files, with kills in between, and then checks
//! states that a power cut could have left: everything acknowledged is stored, doctor finds
//! nothing, what is sent again is answered correctly, and search finds what the store has.
//! Other rounds make system calls fail, and check that nothing is acknowledged wrongly and
//! that everything works once calls succeed again.
//!
//! `TL_CRASH_PROGRAM` names another `tl` to record, such as an older one that must fail.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

mod acknowledgements;
mod check;
mod faults;
mod program_check;
mod recorded_server;
mod regressions;
mod rounds;
mod traced_home;

use acknowledgements::Acknowledgements;
use check::{CrashCase, Scope, Workload};
use throughline_crash_sim::{Rng, power_cuts};
use throughline_store::conformance::torture::TortureBudget;
use traced_home::TracedHome;

/// The totals of a run, printed at its end.
#[derive(Debug, Default)]
pub(crate) struct RunCounts {
    rounds: u64,
    states: usize,
    by_program: usize,
    acknowledgements: usize,
    faults: usize,
}

impl RunCounts {
    fn print(&self, what: &str, seed: u64) {
        let Self {
            rounds,
            states,
            by_program,
            acknowledgements,
            faults,
        } = self;
        println!(
            "{what}: {rounds} rounds, {faults} kills and faults, {states} states, {by_program} \
             of them also by the program, {acknowledgements} acknowledgements checked, seed {seed}"
        );
    }
}

/// One state in this many is also checked with the program.
const PROGRAM_EVERY: usize = 60;

/// Cuts the power at this many moments of a trace, and fails at the first state that is
/// wrong.
pub(crate) fn cut_power(
    traced: &TracedHome,
    sent: &Workload,
    scope: Scope,
    seed: u64,
    states: usize,
    counts: &mut RunCounts,
) {
    let trace = traced.trace();
    counts.faults += trace.injected_count();
    let cuts = power_cuts(&trace, 0, seed, states);
    let checked = traced.disk().simulate(&trace, &cuts, |cut, state| {
        let acknowledged = Acknowledgements::parse(&trace.acknowledged_output(cut.after));
        counts.acknowledgements += acknowledged.count();
        let case = CrashCase {
            state,
            acknowledged: &acknowledged,
            sent,
            after: cut.after,
        };
        let mut checked = case.check(scope);
        counts.states += 1;
        if checked.is_ok() && counts.states.is_multiple_of(PROGRAM_EVERY) {
            counts.by_program += 1;
            checked = case.check_with_program();
        }
        if let Err(wrong) = checked {
            let context = trace.context(cut.after);
            panic!("{wrong}\n{cut}, round seed {seed}, after\n{context}");
        }
    });
    checked.unwrap();
}

/// Runs rounds of one kind: this many in the suite, and for as long as torture sets.
fn run_rounds(
    what: &str,
    (rounds, states): (u64, usize),
    scope: Scope,
    round: fn(&mut Rng) -> (TracedHome, Workload),
) {
    let budget = TortureBudget::from_env(rounds, 18);
    let mut counts = RunCounts::default();
    for number in (0..).take_while(|number| budget.allows_round(*number)) {
        let seed = budget.seed.wrapping_add(number);
        let (traced, sent) = round(&mut Rng::new(seed));
        cut_power(&traced, &sent, scope, seed, states, &mut counts);
        counts.rounds += 1;
    }
    counts.print(what, budget.seed);
}

#[test]
fn appends_survive_kills_and_a_power_cut() {
    run_rounds("appends", (14, 200), Scope::Store, rounds::append_round);
}

#[test]
fn the_index_survives_kills_and_a_power_cut() {
    run_rounds(
        "indexing",
        (8, 70),
        Scope::StoreAndIndex,
        rounds::index_round,
    );
}

#[test]
fn imports_compactions_and_deletions_survive_kills_and_a_power_cut() {
    run_rounds(
        "lifecycle",
        (6, 80),
        Scope::StoreAndIndex,
        rounds::lifecycle_round,
    );
}

#[test]
fn appends_over_http_survive_kills_and_a_power_cut() {
    run_rounds("serving", (8, 150), Scope::Store, rounds::serve_round);
}
