//! Tests that transcripts read back as written, and that the chat loop's can be read.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use throughline_model::{
    AgentRef, Body, Entry, EntryId, GENESIS, Message, Role, Seq, SessionHeader, SessionInfo,
    Summary, SummaryError, Timestamp, Usage,
};

use super::hostile_text::hostile_text;
use super::{MarkdownWriter, Transcript, TranscriptError, TranscriptHeader, read_transcript};

fn entry(body: Body) -> Entry {
    Entry {
        seq: Seq(1),
        id: EntryId::from_bytes([0; 16]),
        at: Timestamp::UNIX_EPOCH,
        external_id: None,
        author: None,
        rebased: None,
        body,
        digest: GENESIS,
    }
}

fn message(role: Role, text: &str, usage: Option<Usage>) -> Entry {
    let mut message = Message::text(role, text);
    message.usage = usage;
    message.latency_ms = usage.map(|_| 1200);
    entry(Body::Message(message))
}

fn round_trip(entries: &[Entry], summary: Option<&Summary>) -> Transcript {
    let mut header = SessionHeader::new("s1".parse().unwrap(), Timestamp::UNIX_EPOCH);
    header.agent = Some(AgentRef {
        name: "Sally".into(),
        path: Some("/sally.md".into()),
    });
    let head = TranscriptHeader::new(&header, &SessionInfo::new(&header));
    let mut writer = MarkdownWriter::new(Vec::new(), &head, TimeZone::UTC).unwrap();
    for entry in entries {
        writer.write_entry(entry).unwrap();
    }
    let text = String::from_utf8(writer.finish(summary).unwrap()).unwrap();
    read_transcript(&text).unwrap()
}

const TOKENS: Usage = Usage {
    input: 1000,
    output: 234,
    cache_read: 0,
    cache_write: 0,
};

proptest! {
    #[test]
    fn what_was_said_reads_back_whatever_it_was(
        turns in prop::collection::vec((hostile_text(), hostile_text(), any::<bool>(), any::<bool>()), 0..5),
        noted in hostile_text(),
    ) {
        let mut entries = Vec::new();
        for (you, answer, counted, agent_changed) in &turns {
            entries.push(entry(Body::Pinned { text: noted.clone() }));
            entries.push(message(Role::User, you, None));
            entries.push(entry(Body::Decided { text: noted.clone() }));
            entries.push(message(Role::System, &noted, None));
            if *agent_changed {
                entries.push(entry(Body::AgentSet(AgentRef { name: "Bob".into(), path: None })));
            }
            entries.push(message(Role::Assistant, answer, counted.then_some(TOKENS)));
        }
        let read = round_trip(&entries, None);
        let expected: Vec<_> = turns
            .iter()
            .map(|(you, answer, counted, _)| {
                (you.trim().to_owned(), answer.trim().to_owned(), counted.then_some(TOKENS))
            })
            .collect();
        let got: Vec<_> = read
            .queries
            .into_iter()
            .map(|query| (query.text, query.answer, query.usage))
            .collect();
        prop_assert_eq!(got, expected);
        prop_assert_eq!(read.summary, Err(SummaryError::Missing));
        let counted = turns.iter().filter(|(_, _, counted, _)| *counted).count() as u64;
        prop_assert_eq!(read.total_tokens, counted * 1234);
    }
}

#[test]
fn a_summary_reads_back() {
    let summary = Summary {
        background: "We chose JWT.".into(),
        topics: vec!["Limits".into()],
        open_tasks: vec!["Ship".into()],
        ..Summary::default()
    };
    let read = round_trip(&[message(Role::User, "hi", None)], Some(&summary));
    assert_eq!(read.summary, Ok(summary));
    assert_eq!(read.queries[0].text, "hi");
    assert_eq!(read.agent.as_deref(), Some("Sally"));
    assert_eq!(read.agent_path.as_deref(), Some("/sally.md"));
    assert_eq!(read.started_at(&TimeZone::UTC), Some(Timestamp::UNIX_EPOCH));
}

/// A transcript as the chat loop writes it.
const REFERENCE: &str = "\
# Simple Sally Conversation

**Session ID:** session_3
**Date:** 2025-12-30T14:30:22.123456
**Agent:** Simple Sally
**Agent Path:** /agents/simple_sally/agent.py
**Total Queries:** 3

---

## Session Restored (14:30:22)
**Context:** Resumed from session_2 (5 queries, 2.3K tokens)
**Previous Session:** /conversations/session_2.md

**Simple Sally:** I've reviewed our previous conversation about auth refactoring.
We discussed JWT tokens and Redis session storage. Ready to continue!

*Time: 2.1s | Tokens: 156 (in: 89, out: 67)*

---

## Query 1 (14:30:45)
**You:** Let's implement the rate limiter

**Note:** by minute

**Simple Sally:** [response]

---

**More:** of it

*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*

---

<!-- SESSION_SUMMARY_START -->
**Background Context:** We discussed auth refactoring.

**Current Session Summary:**
**Topics Discussed:**
- Rate limiter implementation strategies
<!-- SESSION_SUMMARY_END -->
";

#[test]
fn a_transcript_of_the_reference_system_is_read() {
    let read = read_transcript(REFERENCE).unwrap();
    assert_eq!(read.title.as_deref(), Some("Simple Sally"));
    assert_eq!(read.session_id.as_deref(), Some("session_3"));
    assert_eq!(read.resumed_from.as_deref(), Some("session_2"));
    assert_eq!(
        read.previous_session.as_deref(),
        Some("/conversations/session_2.md")
    );
    assert_eq!(read.total_queries, Some(3));
    assert_eq!(read.total_tokens, 501);
    let berlin = TimeZone::fixed(jiff::tz::offset(1));
    assert_eq!(
        read.started_at(&berlin).unwrap().to_string(),
        "2025-12-30T13:30:22.123456Z"
    );
    let restored = read.restored.unwrap();
    assert!(restored.acknowledgement.ends_with("Ready to continue!"));
    assert!(restored.acknowledgement.starts_with("I've reviewed"));
    assert_eq!(restored.usage.unwrap().total(), 156);
    let [query] = &read.queries[..] else {
        panic!("one query");
    };
    assert_eq!(query.time, jiff::civil::time(14, 30, 45, 0));
    assert_eq!(
        query.text,
        "Let's implement the rate limiter\n\n**Note:** by minute"
    );
    assert_eq!(query.answer, "[response]\n\n---\n\n**More:** of it");
    assert_eq!(query.latency_ms, Some(3200));
    assert_eq!(read.summary.unwrap().topics.len(), 1);
}

#[test]
fn windows_line_ends_make_no_difference() {
    let windows = REFERENCE.replace('\n', "\r\n");
    assert_eq!(read_transcript(&windows), read_transcript(REFERENCE));
}

#[test]
fn a_marker_that_somebody_said_hides_no_queries() {
    let text = REFERENCE.replace("[response]", "use <!-- SESSION_SUMMARY_START --> here");
    let cut = text.rfind("<!-- SESSION_SUMMARY_START").unwrap();
    let more = format!("{}## Query 2 (14:31:00)\n**You:** more\n", &text[..cut]);
    let read = read_transcript(&more).unwrap();
    assert_eq!(read.queries.len(), 2);
    assert_eq!(read.summary, Err(SummaryError::Markers));
}

#[test]
fn other_texts_are_no_transcripts() {
    for text in [
        "",
        "# Notes",
        "hello\n\n---\n**Session ID:** x",
        "## Query 1 (10:00:00)",
    ] {
        assert_eq!(read_transcript(text), Err(TranscriptError::NotATranscript));
    }
}
