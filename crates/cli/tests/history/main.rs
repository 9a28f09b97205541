//! Runs several servers over one store with kills, pauses, restarts, restored backups and
//! wrong clocks, and verifies all answers as one history.
//!
//! `recorded_history` holds what was recorded and `checker` the rules; the other modules
//! produce it. The suite runs one short history for each kind of store; `cargo xtask
//! torture` runs many. The faults and client actions follow from the seed; process
//! scheduling does not, so a seed repeats the situation rather than the exact run.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod checker;
mod checker_tests;
mod clients;
mod faults;
mod http;
mod recorded_history;
mod seeded_rng;
mod servers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use throughline_cluster::{Cluster, PostgresBinaries};
use throughline_store::conformance::torture::TortureBudget;

use crate::clients::{
    COMMON_SESSION, Client, FeedFollower, SharedState, followed_counts, own_session,
};
use crate::faults::{Database, FaultCounts, FaultInjector};
use crate::recorded_history::{History, ObservedEntry};
use crate::seeded_rng::SeededRng;
use crate::servers::Servers;

const SERVERS: usize = 3;
const CLIENTS: usize = 4;
const FOLLOWERS: usize = 2;
/// How many faults one history has: in the suite, and in a long run.
const FAULTS: usize = 14;
const MANY_FAULTS: usize = 40;

#[test]
fn servers_over_one_sqlite_file_give_one_history() {
    let budget = TortureBudget::from_env(1, 18);
    for round in (0..).take_while(|round| budget.allows_round(*round)) {
        let mut servers = Servers::start(SERVERS, None);
        let mut database = Database::Sqlite;
        let counts = run("sqlite", budget, round, &mut servers, &mut database);
        assert_eq!(counts.exits, 0, "a server ended by itself");
    }
}

#[test]
fn servers_over_one_postgres_database_give_one_history() {
    let Some(programs) = PostgresBinaries::for_tests() else {
        return;
    };
    let budget = TortureBudget::from_env(1, 18);
    for round in (0..).take_while(|round| budget.allows_round(*round)) {
        // Stopping it is not a power cut, so nothing needs to be synced.
        let cluster = Cluster::start(&programs, &["fsync=off"]).unwrap();
        let mut servers = Servers::start(SERVERS, Some(cluster.url()));
        let mut database = Database::Postgres(cluster);
        run("postgres", budget, round, &mut servers, &mut database);
    }
}

/// Records one history and verifies it.
fn run(
    name: &str,
    budget: TortureBudget,
    round: u64,
    servers: &mut Servers,
    database: &mut Database,
) -> FaultCounts {
    let seed = budget.seed.wrapping_add(round);
    let shared = Arc::new(SharedState {
        started: Instant::now(),
        addresses: servers.addresses(),
        history: Mutex::default(),
        stop: AtomicBool::new(false),
        stop_following: AtomicBool::new(false),
        restores: AtomicUsize::new(0),
        unexpected: Mutex::default(),
        acknowledged: AtomicUsize::new(0),
    });
    make_sessions(&shared);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = new_client(&shared, seed, number);
            std::thread::spawn(move || client.run())
        })
        .collect();
    let followers: Vec<_> = (0..FOLLOWERS)
        .map(|number| {
            let follower = FeedFollower {
                number,
                rng: SeededRng::new(seed, 100 + number as u64),
                shared: Arc::clone(&shared),
            };
            std::thread::spawn(move || follower.run())
        })
        .collect();

    let mut faults = FaultInjector::new(SeededRng::new(seed, 200), &shared, servers, database);
    let count = if budget.is_torture() {
        MANY_FAULTS
    } else {
        FAULTS
    };
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..count {
        faults.inject_one();
    }
    faults.end_faults();
    std::thread::sleep(Duration::from_millis(500));
    let (log, counts) = (faults.log, faults.counts);
    shared.stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }

    read_final_state(&shared, seed);
    let started = Instant::now();
    while !followers_caught_up(&shared) && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    shared.stop_following.store(true, Ordering::Relaxed);
    for follower in followers {
        follower.join().unwrap();
    }
    let findings = servers.doctor_findings();

    let history = shared.history.lock().unwrap();
    println!(
        "{name}, seed {seed}: {counts}, {} processes; {}",
        servers.starts(),
        checker::count(&history)
    );
    let mut wrong: Vec<String> = checker::check(&history)
        .iter()
        .map(ToString::to_string)
        .collect();
    wrong.extend(shared.unexpected.lock().unwrap().iter().cloned());
    wrong.extend(findings.iter().map(|finding| format!("doctor: {finding}")));
    if !wrong.is_empty() {
        let kept = servers.keep_folder();
        write_diagnostics(&kept, &log, &history);
        let shown: Vec<_> = wrong.iter().take(12).map(String::as_str).collect();
        panic!(
            "{name}, seed {seed}: {} violations; logs and history are in {}\n{}",
            wrong.len(),
            kept.display(),
            shown.join("\n")
        );
    }
    counts
}

fn new_client(shared: &Arc<SharedState>, seed: u64, number: usize) -> Client {
    Client {
        number,
        rng: SeededRng::new(seed, number as u64),
        shared: Arc::clone(shared),
        server: number % SERVERS,
        known: Vec::new(),
    }
}

fn sessions() -> Vec<String> {
    let own = (0..CLIENTS).map(own_session);
    std::iter::once(COMMON_SESSION.to_owned())
        .chain(own)
        .collect()
}

fn make_sessions(shared: &SharedState) {
    let address = shared.addresses.get(0).unwrap();
    for session in sessions() {
        let body = json!({ "id": session });
        let timeout = Duration::from_secs(20);
        let made = http::call(address, timeout, "POST", "/api/sessions", Some(&body)).unwrap();
        assert_eq!(made.0, 201, "{}", made.1);
    }
}

/// Reads everything from each server, and searches for some of it.
fn read_final_state(shared: &Arc<SharedState>, seed: u64) {
    let mut chance = SeededRng::new(seed, 300);
    for server in 0..SERVERS {
        let mut client = new_client(shared, seed, 400 + server);
        let mut logs = BTreeMap::new();
        for session in sessions() {
            client.server = server;
            logs.insert(session.clone(), client.read_whole_log(&session));
        }
        let all: Vec<ObservedEntry> = logs.values().flatten().cloned().collect();
        shared.history.lock().unwrap().final_logs.push(logs);
        for _ in 0..30.min(all.len()) {
            let at = usize::try_from(chance.below(all.len() as u64)).unwrap();
            client.server = server;
            client.search_until_indexed(&all[at].id);
        }
    }
}

/// Whether every follower has received everything.
fn followers_caught_up(shared: &SharedState) -> bool {
    let history = shared.history.lock().unwrap();
    (0..FOLLOWERS).all(|follower| {
        let followed = followed_counts(&history, follower);
        history.final_logs[0].iter().all(|(session, log)| {
            followed.get(session).copied().unwrap_or_default() == log.len() as u64
        })
    })
}

/// Writes the faults and the history to files.
fn write_diagnostics(folder: &Path, log: &[String], history: &History) {
    std::fs::write(folder.join("faults.txt"), log.join("\n")).unwrap();
    std::fs::write(folder.join("history.txt"), format!("{history:#?}")).unwrap();
}
