//! The recorded workloads: rounds of commands, most with a kill in the middle.

use std::collections::BTreeSet;

use throughline_crash_sim::{DurabilityModel, Fault, FaultAction, Rng, SyscallKind};

use crate::check::{SEARCH_WORD, Workload};
use crate::recorded_server::RecordedServer;
use crate::traced_home::{MessageLine, TracedHome, to_json_lines};

pub(crate) fn random_line(rng: &mut Rng, id: String) -> MessageLine {
    // Some are longer than a page.
    let padding = if rng.one_in(9) { 900 } else { rng.below(12) };
    let text = format!("{SEARCH_WORD} {id} {}", "rope ".repeat(padding));
    MessageLine {
        id,
        text: text.trim().to_owned(),
    }
}

pub(crate) fn random_lines(rng: &mut Rng, prefix: &str, count: usize) -> Vec<MessageLine> {
    (0..count)
        .map(|n| random_line(rng, format!("{prefix}-{n}")))
        .collect()
}

fn random_model(rng: &mut Rng) -> DurabilityModel {
    if rng.one_in(3) {
        DurabilityModel::Ext4
    } else {
        DurabilityModel::Posix
    }
}

fn random_kill_action(rng: &mut Rng) -> FaultAction {
    [FaultAction::KillBefore, FaultAction::KillAfter][rng.below(2)]
}

/// A kill at some moment of an append, or none.
fn random_kill(rng: &mut Rng) -> Vec<Fault> {
    let action = random_kill_action(rng);
    let fault = match rng.below(6) {
        0 => return Vec::new(),
        1 | 2 => Fault::new(SyscallKind::Sync, 1 + rng.below(6), action).in_path("-wal"),
        3 => {
            Fault::new(SyscallKind::Write, 1 + rng.below(40), FaultAction::TornKill).in_path("-wal")
        }
        4 => Fault::new(SyscallKind::Ack, 1 + rng.below(5), action),
        _ => Fault::new(SyscallKind::Any, 1 + rng.below(60), action),
    };
    vec![fault]
}

/// A kill at some moment of indexing, or none.
fn random_index_kill(rng: &mut Rng) -> Vec<Fault> {
    let action = random_kill_action(rng);
    let fault = match rng.below(6) {
        0 => return Vec::new(),
        1 => Fault::new(SyscallKind::Any, 1 + rng.below(2), action).in_path(".del"),
        2 => Fault::new(SyscallKind::Rename, 1 + rng.below(4), action).in_path("sessions.index"),
        3 => Fault::new(SyscallKind::Sync, 1 + rng.below(12), action).in_path("sessions.index"),
        _ => Fault::new(SyscallKind::Any, 1 + rng.below(60), action).in_path("sessions.index"),
    };
    vec![fault]
}

/// Arguments that create a session, or find the one created before.
pub(crate) fn new_session_args(session: &str) -> [&str; 7] {
    let (id, key) = ("--id", "--key");
    ["new", id, session, key, session, "--no-project", "--json"]
}

pub(crate) const SEARCH_ARGS: [&str; 5] = ["search", SEARCH_WORD, "--mode", "text", "--json"];

/// Appends: a few processes in sequence, most of them killed, each resending what the
/// previous ones got no answer to.
pub(crate) fn append_round(rng: &mut Rng) -> (TracedHome, Workload) {
    let traced = TracedHome::new(random_model(rng));
    let mut sent = Workload::new(&["first", "second"]);
    for session in ["first", "second"] {
        traced.run_until_ok(&random_kill(rng), &new_session_args(session));
    }
    for process in 0..5 {
        let session = ["first", "first", "second"][rng.below(3)];
        let all = &mut sent.session(session).lines;
        // The last few again, as a client does that got no answer.
        let again = all.len().saturating_sub(1 + rng.below(6));
        let count = 3 + rng.below(8);
        all.extend(random_lines(rng, &process.to_string(), count));
        let last = process == 4;
        let faults = if last { Vec::new() } else { random_kill(rng) };
        let stream = all[again..].to_vec();
        traced.append(&faults, session, &stream, 1 + rng.below(4));
    }
    (traced, sent)
}

/// Indexing between appends, erasures and deletions, killed at any moment.
pub(crate) fn index_round(rng: &mut Rng) -> (TracedHome, Workload) {
    let traced = TracedHome::new(random_model(rng));
    let mut sent = Workload::new(&["first", "second"]);
    for session in ["first", "second"] {
        traced.run_ok(&new_session_args(session));
        let count = 3 + rng.below(4);
        let stream = random_lines(rng, "0", count);
        sent.session(session).lines.clone_from(&stream);
        traced.append(&[], session, &stream, count);
    }
    search_with_kill(rng, &traced);
    for process in 1..3 {
        let stream = random_lines(rng, &process.to_string(), 2);
        sent.session("first").lines.extend(stream.clone());
        traced.append(&random_kill(rng), "first", &stream, 2);
        if rng.one_in(2) {
            let seq = 1 + rng.below(3) as u64;
            let from = traced.position();
            sent.session("first").erased.entry(seq).or_insert(from);
            let seq = seq.to_string();
            traced.run_until_ok(
                &random_kill(rng),
                &["erase", "first", &seq, "--yes", "--json"],
            );
        }
        if process == 2 && rng.one_in(2) {
            delete_with_kill(rng, &traced, &mut sent, "second");
        }
        search_with_kill(rng, &traced);
    }
    traced.run_ok(&SEARCH_ARGS);
    (traced, sent)
}

/// A search that is killed while it indexes. Half the time the next one has nothing more to
/// index, so that it writes the same files again.
fn search_with_kill(rng: &mut Rng, traced: &TracedHome) {
    let kill = random_index_kill(rng);
    if rng.one_in(2) {
        traced.run_until_ok(&kill, &SEARCH_ARGS);
    } else {
        traced.run(&kill, &SEARCH_ARGS);
    }
}

fn delete_with_kill(rng: &mut Rng, traced: &TracedHome, sent: &mut Workload, session: &str) {
    let from = traced.position();
    sent.session(session).deleted = Some(from);
    // Killed after it finished, it has nothing to do the second time.
    if !traced
        .run(&random_kill(rng), &["delete", session, "--json"])
        .status
        .success()
    {
        traced.run(&[], &["delete", session, "--json"]);
    }
    if rng.one_in(2) {
        sent.session(session).purged = Some(traced.position());
        traced.run_until_ok(
            &random_kill(rng),
            &["purge", "--older-than", "0d", "--json"],
        );
    }
}

/// Creates a home, imports, compacts, deletes and purges.
pub(crate) fn lifecycle_round(rng: &mut Rng) -> (TracedHome, Workload) {
    let traced = TracedHome::without_home(random_model(rng));
    let mut sent = Workload::new(&["first", "third"]);
    traced.run_until_ok(&random_kill(rng), &new_session_args("first"));
    import_with_kill(rng, &traced, &mut sent);
    let stream = random_lines(rng, "a", 4);
    sent.session("first").lines.extend(stream.clone());
    traced.append(&random_kill(rng), "first", &stream, 2);
    traced.append(&[], "first", &stream, 4);
    sent.session("first").compacted = true;
    let compact = ["compact", "first", "--json"];
    if !traced.run(&random_kill(rng), &compact).status.success() {
        traced.run(&[], &compact);
    }
    if rng.one_in(2) {
        traced.run(&random_index_kill(rng), &SEARCH_ARGS);
    }
    delete_with_kill(rng, &traced, &mut sent, "third");
    (traced, sent)
}

fn import_with_kill(rng: &mut Rng, traced: &TracedHome, sent: &mut Workload) {
    let mut file = String::new();
    for session in ["first", "third"] {
        let count = 3 + rng.below(4);
        let stream = random_lines(rng, "i", count);
        for text in String::from_utf8(to_json_lines(&stream)).unwrap().lines() {
            file += &format!("{{\"session\":\"{session}\",{}\n", &text[1..]);
        }
        let session = sent.session(session);
        session.imported = stream
            .iter()
            .map(|line| line.id.clone())
            .collect::<BTreeSet<_>>();
        session.lines.extend(stream);
    }
    let path = traced.folder().join("lines.jsonl");
    std::fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let kill = if rng.one_in(2) {
        random_kill(rng)
    } else {
        random_index_kill(rng)
    };
    traced.run_until_ok(&kill, &["import", path, "--json"]);
}

/// A server with three clients, and a command that appends at the same time, killed twice
/// each; they resend what was not answered.
pub(crate) fn serve_round(rng: &mut Rng) -> (TracedHome, Workload) {
    let traced = TracedHome::new(random_model(rng));
    let sessions = ["first", "second", "third"];
    let mut sent = Workload::new(&sessions);
    traced.run_ok(&new_session_args("fourth"));
    for session in sessions.iter().chain(&["fourth"]) {
        let count = 5 + rng.below(4);
        sent.session(session).lines = random_lines(rng, "h", count);
    }
    for run in 0..3 {
        let mut faults = [random_kill(rng), random_kill(rng)];
        if run == 2 {
            faults = [Vec::new(), Vec::new()];
        }
        let Some(served) = RecordedServer::start(&traced, &faults[0]) else {
            continue;
        };
        std::thread::scope(|scope| {
            let (traced, lines) = (&traced, &sent.sessions["fourth"].lines);
            scope.spawn(move || traced.append(&faults[1], "fourth", lines, 2));
            for session in sessions {
                let (served, lines) = (&served, &sent.sessions[session].lines);
                scope.spawn(move || {
                    if served.create(session).is_none() {
                        return;
                    }
                    for group in lines.chunks(1 + run) {
                        if served.append(session, group).is_none() {
                            return;
                        }
                    }
                });
            }
        });
        served.stop();
    }
    (traced, sent)
}
