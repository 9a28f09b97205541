//! Sources that grow: reading on from a bookmark tells what reading anew would have.

use std::io::Write as _;

use throughline_formats::Agent;
use throughline_model::Incoming;

use crate::told::{all, fixture, from, written};

fn session(incoming: &Incoming) -> Option<String> {
    match incoming {
        Incoming::Session(session) => Some(session.id.clone()),
        _ => None,
    }
}

/// However a file is cut in two, both parts together tell what the whole does.
fn grows(agent: Agent, name: &str, file: &str) {
    let whole = std::fs::read(fixture(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, &whole).unwrap();
    let torn = |told: Vec<Incoming>| -> Vec<Incoming> {
        let incomplete = |incoming: &Incoming| matches!(incoming, Incoming::Passed(p) if p.what == "the last line is not complete");
        told.into_iter()
            .filter(|incoming| !incomplete(incoming))
            .collect()
    };
    let expected = written(&torn(all(agent, &path)));
    for cut in (0..whole.len()).step_by(389) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut told, bookmark) = from(agent, &path, None);
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(&whole[cut..]).unwrap();
        let mut later = from(agent, &path, bookmark.as_ref()).0;
        // The session it goes on in is told again.
        let before = told.iter().rev().find_map(session);
        if before.is_some() {
            assert_eq!(session(&later.remove(0)), before, "cut at {cut}");
        }
        told.extend(later);
        assert_eq!(written(&torn(told)), expected, "cut at {cut}");
    }
}

#[test]
fn a_claude_code_session_may_be_read_while_it_is_written() {
    let name = "11111111-1111-4111-8111-111111111111.jsonl";
    grows(Agent::ClaudeCode, &format!("claude-code/{name}"), name);
}

#[test]
fn a_pi_session_may_be_read_while_it_is_written() {
    let name = "2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl";
    grows(Agent::Pi, &format!("pi/{name}"), name);
}

#[test]
fn a_codex_rollout_may_be_read_while_it_is_written_but_for_figures() {
    let name = "rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl";
    let whole = std::fs::read_to_string(fixture(&format!("codex/{name}"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let count = |told: &[Incoming]| {
        let entries = told.iter().filter(|i| matches!(i, Incoming::Entry(_)));
        entries.count()
    };
    std::fs::write(&path, &whole).unwrap();
    let expected = count(&all(Agent::Codex, &path));
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for cut in ends {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut told, bookmark) = from(Agent::Codex, &path, None);
        std::fs::write(&path, &whole).unwrap();
        told.extend(from(Agent::Codex, &path, bookmark.as_ref()).0);
        assert_eq!(count(&told), expected, "cut at {cut}");
    }
}

#[test]
fn whoever_listens_can_stop() {
    let path = fixture("claude-code/11111111-1111-4111-8111-111111111111.jsonl");
    let mut heard = 0;
    let stopped = throughline_formats::read_source(Agent::ClaudeCode, &path, None, &mut |_| {
        heard += 1;
        heard < 3
    });
    assert!(stopped.is_err());
    assert_eq!(heard, 3);
}
