//! Tests that reading a growing source from a cursor gives the same as reading it anew.

use std::io::Write as _;

use throughline_formats::SourceFormat;
use throughline_model::IncomingItem;

use crate::rendered_records::{fixture, read_all, read_from, render_records};

fn session_id(incoming: &IncomingItem) -> Option<String> {
    match incoming {
        IncomingItem::Session(session) => Some(session.id.clone()),
        _ => None,
    }
}

/// Checks for every split of a file that both parts together read like the whole.
fn assert_incremental_read_matches(agent: SourceFormat, name: &str, file: &str) {
    let whole = std::fs::read(fixture(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, &whole).unwrap();
    let torn = |output: Vec<IncomingItem>| -> Vec<IncomingItem> {
        let incomplete = |incoming: &IncomingItem| matches!(incoming, IncomingItem::Skipped(p) if p.description == "the last line is not complete");
        output
            .into_iter()
            .filter(|incoming| !incomplete(incoming))
            .collect()
    };
    let expected = render_records(&torn(read_all(agent, &path)));
    for cut in (0..whole.len()).step_by(389) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut output, bookmark) = read_from(agent, &path, None);
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap();
        file.write_all(&whole[cut..]).unwrap();
        let mut later = read_from(agent, &path, bookmark.as_ref()).0;
        // The current session is emitted again.
        let before = output.iter().rev().find_map(session_id);
        if before.is_some() {
            assert_eq!(session_id(&later.remove(0)), before, "cut at {cut}");
        }
        output.extend(later);
        assert_eq!(render_records(&torn(output)), expected, "cut at {cut}");
    }
}

#[test]
fn a_claude_code_session_may_be_read_while_it_is_written() {
    let name = "11111111-1111-4111-8111-111111111111.jsonl";
    assert_incremental_read_matches(
        SourceFormat::ClaudeCode,
        &format!("claude-code/{name}"),
        name,
    );
}

#[test]
fn a_pi_session_may_be_read_while_it_is_written() {
    let name = "2026-01-02T10-00-00-000Z_66666666-6666-4666-8666-666666666666.jsonl";
    assert_incremental_read_matches(SourceFormat::Pi, &format!("pi/{name}"), name);
}

#[test]
fn a_codex_rollout_may_be_read_while_it_is_written_but_for_figures() {
    let name = "rollout-2026-01-02T10-00-00-33333333-3333-4333-8333-333333333333.jsonl";
    let whole = std::fs::read_to_string(fixture(&format!("codex/{name}"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let count = |output: &[IncomingItem]| {
        let entries = output
            .iter()
            .filter(|i| matches!(i, IncomingItem::Entry(_)));
        entries.count()
    };
    std::fs::write(&path, &whole).unwrap();
    let expected = count(&read_all(SourceFormat::Codex, &path));
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for cut in ends {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut output, bookmark) = read_from(SourceFormat::Codex, &path, None);
        std::fs::write(&path, &whole).unwrap();
        output.extend(read_from(SourceFormat::Codex, &path, bookmark.as_ref()).0);
        assert_eq!(count(&output), expected, "cut at {cut}");
    }
}

#[test]
fn a_sink_can_stop_the_reader() {
    let path = fixture("claude-code/11111111-1111-4111-8111-111111111111.jsonl");
    let mut heard = 0;
    let stopped =
        throughline_formats::read_source(SourceFormat::ClaudeCode, &path, None, &mut |_| {
            heard += 1;
            heard < 3
        });
    assert!(stopped.is_err());
    assert_eq!(heard, 3);
}
