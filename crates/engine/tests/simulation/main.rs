//! Deterministic simulation of writers, leases, turns and indexers.
//!
//! A few server processes share a store. Clients send them questions, and retry with another
//! server if an answer does not arrive. Meanwhile processes are stalled and killed, the clock
//! is set, the store's file is locked and its disk fails. Invariants that must always hold:
//!
//! - a question has exactly one answer in the log, and nothing acknowledged is lost
//! - a write is answered by its deadline
//! - once the faults end, every client gets its answers soon, even if the clock was changed
//! - a process that waits for a lease is notified which process holds it
//! - a search finds every entry of the log exactly once
//!
//! Everything is determined by a seed. A failing seed is printed and can be rerun:
//! `TL_TORTURE_SEED=N cargo nextest run -p throughline --test simulation`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod executor;
mod servers;
mod store;
mod writer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::{ProcessId, Simulation};
use servers::{Cluster, Request};
use throughline::{Entry, Owner, ReadRange, Role, SessionId};
use throughline_store::conformance::torture::TortureBudget;
use throughline_store::{LogStore, Maintenance};

/// All faults end before this time.
const FAULTS_END: Duration = Duration::from_secs(600);
/// All clients must have their answers by this time.
const END: Duration = Duration::from_secs(1_200);
const QUESTIONS: usize = 4;
/// How long a client waits before it retries with another server.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(40);
const NEMESIS: ProcessId = ProcessId(100);
const CLIENTS: ProcessId = ProcessId(101);
const CHECKER: ProcessId = ProcessId(102);

/// The number of seeds that the suite runs.
const ROUNDS: u64 = 60;
const SEED: u64 = 1;

struct Outcome {
    violations: Vec<String>,
    trace: Vec<String>,
}

fn simulate(seed: u64) -> Outcome {
    let simulation = Simulation::new(seed);
    let sessions: Vec<SessionId> = (0..3)
        .map(|n| format!("session-{n}").parse().unwrap())
        .collect();
    // The index is on a real disk and takes most of the time.
    let indexed = seed.is_multiple_of(8);
    let cluster = Arc::new(Cluster::new(&simulation, 3, indexed));
    let finished = Arc::new(Mutex::new(0));
    for session in &sessions {
        let client = ask_everything(Arc::clone(&cluster), session.clone(), Arc::clone(&finished));
        simulation.spawn(CLIENTS, client);
    }
    simulation.spawn(NEMESIS, inject_faults(Arc::clone(&cluster)));
    simulation.run(END);
    if *finished.lock().unwrap() < sessions.len() {
        simulation.record_violation("a client was left without its answers".to_owned());
    }
    simulation.spawn(CHECKER, check(Arc::clone(&cluster), sessions));
    simulation.run(END * 2);
    Outcome {
        violations: simulation.violations(),
        trace: simulation.trace(),
    }
}

/// A client that sends questions one after the other, retrying each until it is answered.
async fn ask_everything(cluster: Arc<Cluster>, session: SessionId, finished: Arc<Mutex<usize>>) {
    let simulation = cluster.simulation.clone();
    for number in 0..QUESTIONS {
        let key = format!("{session}-question-{number}");
        simulation.sleep(simulation.random_duration(60_000)).await;
        loop {
            let (request, reply) = Request::new(&session, &key);
            let process = cluster.send(request);
            let timeout = simulation.sleep(CLIENT_TIMEOUT);
            let answer = tokio::select! {
                biased;
                answer = reply => answer.unwrap_or(Err("the connection was lost".to_owned())),
                () = timeout => Err("no answer in time".to_owned()),
            };
            match answer {
                Ok(()) => {
                    simulation.log(&format!("{key} is answered by {process:?}"));
                    cluster.acknowledge(&session, &key);
                    break;
                }
                Err(why) => {
                    simulation.log(&format!("{key} is not answered by {process:?}: {why}"));
                }
            }
            simulation.sleep(simulation.random_duration(2_000)).await;
        }
    }
    *finished.lock().unwrap() += 1;
}

/// Injects faults into the processes and their store.
async fn inject_faults(cluster: Arc<Cluster>) {
    let simulation = &cluster.simulation;
    loop {
        simulation.sleep(simulation.random_duration(25_000)).await;
        if simulation.elapsed() >= FAULTS_END {
            return;
        }
        let process = cluster.any_process();
        match simulation.random(10) {
            0..=3 => simulation.stall(process, simulation.random_duration(60_000)),
            4..=5 => {
                cluster.kill(process);
                simulation.sleep(simulation.random_duration(5_000)).await;
                cluster.start(process);
            }
            6 => simulation.set_clock(-i64::try_from(simulation.random(2 * 86_400)).unwrap()),
            7 => simulation.set_clock(i64::try_from(simulation.random(86_400)).unwrap()),
            8 => cluster.lock_disk(simulation.random_duration(120_000)),
            _ => cluster.break_disk(simulation.random_duration(20_000)),
        }
    }
}

async fn entries(cluster: &Cluster, session: &SessionId) -> Vec<Entry> {
    let session = Owner::local().session(session);
    let read = ReadRange::starting_at(throughline::Seq(1), usize::MAX);
    cluster.store.read(&session, read).await.unwrap_or_default()
}

/// Checks the final state of the store.
async fn check(cluster: Arc<Cluster>, sessions: Vec<SessionId>) {
    let simulation = &cluster.simulation;
    for session in &sessions {
        let mut answers: BTreeMap<String, usize> = BTreeMap::new();
        let mut question = None;
        for entry in entries(&cluster, session).await {
            let Some(message) = entry.message() else {
                continue;
            };
            let text = message.content.to_text().into_owned();
            match message.role {
                Role::User => {
                    let asked_before = answers.insert(text.clone(), 0).is_some();
                    if asked_before {
                        simulation.record_violation(format!("{text} is in the log twice"));
                    }
                    question = Some(text);
                }
                Role::Assistant => {
                    let answered = question.as_ref().and_then(|asked| answers.get_mut(asked));
                    *answered.unwrap() += 1;
                    cluster.expect_found(session, entry.seq, &text);
                }
                Role::System | Role::Tool => {}
            }
        }
        for (question, count) in &answers {
            if *count > 1 {
                simulation.record_violation(format!("{question} has {count} answers"));
            }
        }
        for key in cluster.acknowledged(session) {
            if answers.get(&key).copied().unwrap_or_default() == 0 {
                simulation.record_violation(format!("the answer to {key} is lost"));
            }
        }
    }
    let report = cluster.store.check(&|_, _| {}).await.unwrap();
    if !report.findings.is_empty() {
        simulation.record_violation(format!("{:?}", report.findings));
    }
    cluster.check_search().await;
}

fn fail(seed: u64, outcome: &Outcome) -> ! {
    let last = outcome.trace.len().saturating_sub(80);
    panic!(
        "seed {seed}: {:#?}\n{}\nrerun it: TL_TORTURE_SEED={seed} cargo nextest run -p \
         throughline --test simulation",
        outcome.violations,
        outcome.trace[last..].join("\n"),
    );
}

#[test]
fn whatever_happens_every_question_has_one_answer_in_time() {
    let budget = TortureBudget::from_env(ROUNDS, SEED);
    let mut round = 0;
    while budget.allows_round(round) {
        let seed = budget.seed.wrapping_add(round);
        let outcome = simulate(seed);
        if !outcome.violations.is_empty() {
            fail(seed, &outcome);
        }
        round += 1;
    }
    if budget.is_torture() {
        eprintln!("{round} simulations");
    }
}

#[test]
fn a_seed_is_deterministic() {
    for seed in [3, 8] {
        assert_eq!(simulate(seed).trace, simulate(seed).trace);
    }
}
