//! Tests the exact text of transcripts.

use jiff::tz::TimeZone;
use throughline_model::{Entry, EntryId, GENESIS, Seq, SessionId, StoredEntry, Summary, Timestamp};

use super::{MarkdownWriter, TranscriptHeader};

fn entry(seq: u64, at: &str, payload: &str) -> Entry {
    let stored = StoredEntry {
        seq: Seq(seq),
        id: EntryId::from_bytes([0; 16]),
        at: format!("2025-12-30T{at}Z").parse().unwrap(),
        digest: GENESIS,
        payload: payload.to_owned(),
    };
    stored.decode().unwrap()
}

fn header() -> TranscriptHeader {
    TranscriptHeader {
        title: "auth".into(),
        session: "session_3".parse::<SessionId>().unwrap(),
        created_at: "2025-12-30T14:30:22.123456Z".parse::<Timestamp>().unwrap(),
        agent: None,
        first_agent: None,
        resumed_from: None,
        previous_session: None,
        total_queries: 1,
    }
}

fn render(head: &TranscriptHeader, entries: &[(&str, &str)], summary: Option<&Summary>) -> String {
    let mut writer = MarkdownWriter::new(Vec::new(), head, TimeZone::UTC).unwrap();
    for ((at, payload), seq) in entries.iter().zip(1..) {
        writer.write_entry(&entry(seq, at, payload)).unwrap();
    }
    String::from_utf8(writer.finish(summary).unwrap()).unwrap()
}

/// Renders a session without an agent; returns the text after the header.
pub(super) fn render_body(entries: &[(&str, &str)]) -> String {
    let text = render(&header(), entries, None);
    text.split_once("---\n\n").unwrap().1.to_owned()
}

#[test]
fn a_transcript_is_the_documented_one() {
    let mut head = header();
    head.agent = Some(throughline_model::AgentRef {
        name: "Simple Sally".into(),
        path: Some("/agents/simple_sally/agent.py".into()),
    });
    head.resumed_from = Some("session_2".parse().unwrap());
    head.previous_session = Some("/conversations/session_2.md".into());
    let summary = Summary {
        background: "We discussed auth.".into(),
        topics: vec!["Rate limiter".into()],
        decisions: vec!["Token bucket".into()],
        pending: vec!["Testing".into()],
        ..Summary::default()
    };
    let entries = [
        (
            "14:30:22",
            r#"{"kind":"restored","from":"session_2","prompt":"p","acknowledgement":"I've reviewed it.\nReady!","transcript":"/conversations/session_2.md","usage":{"input":89,"output":67},"latency_ms":2100}"#,
        ),
        (
            "14:30:45",
            r#"{"kind":"message","role":"user","content":"Let's implement the rate limiter"}"#,
        ),
        (
            "14:30:49",
            r#"{"kind":"message","role":"assistant","content":"Done.","usage":{"input":1123,"output":222},"latency_ms":3200}"#,
        ),
    ];
    assert_eq!(
        render(&head, &entries, Some(&summary)),
        "\
# Simple Sally Conversation

**Session ID:** session_3
**Date:** 2025-12-30T14:30:22.123456+00:00
**Agent:** Simple Sally
**Agent Path:** /agents/simple_sally/agent.py
**Resumed From:** session_2
**Previous Session:** /conversations/session_2.md
**Total Queries:** 1

---

## Session Restored (14:30:22)
**Context:** Resumed from session_2
**Previous Session:** /conversations/session_2.md

**Simple Sally:** I've reviewed it.
Ready!

*Time: 2.1s | Tokens: 156 (in: 89, out: 67)*

---

## Query 1 (14:30:45)
**You:** Let's implement the rate limiter

**Simple Sally:** Done.

*Time: 3.2s | Tokens: 1,345 (in: 1,123, out: 222)*

---

<!-- SESSION_SUMMARY_START -->
**Background Context:** We discussed auth.

**Current Session Summary:**
**Topics Discussed:**
- Rate limiter

**Decisions Made:**
- Token bucket

**Pending:**
- Testing
<!-- SESSION_SUMMARY_END -->
"
    );
}

#[test]
fn a_session_without_an_agent_is_called_by_its_title() {
    assert_eq!(
        render(&header(), &[], None),
        "# auth Conversation\n\n**Session ID:** session_3\n\
         **Date:** 2025-12-30T14:30:22.123456+00:00\n**Total Queries:** 1\n\n---\n\n"
    );
}

#[test]
fn times_are_shown_in_the_zone_asked_for() {
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    let mut writer = MarkdownWriter::new(Vec::new(), &header(), zone).unwrap();
    let hi = entry(
        1,
        "23:30:00",
        r#"{"kind":"message","role":"user","content":"hi"}"#,
    );
    writer.write_entry(&hi).unwrap();
    let text = String::from_utf8(writer.finish(None).unwrap()).unwrap();
    assert!(text.contains("**Date:** 2025-12-30T16:30:22.123456+02:00\n"));
    assert!(text.contains("## Query 1 (01:30:00)\n"));
}

#[test]
fn tools_thoughts_and_files_are_shown_in_the_answer() {
    let text = render_body(&[
        (
            "10:00:00",
            r#"{"kind":"message","role":"user","content":[{"type":"text","text":"Look"},{"type":"attachment","blob":"0000000000000000000000000000000000000000000000000000000000000000","media_type":"image/png","bytes":2048,"name":"a.png"}],"author":"ada"}"#,
        ),
        (
            "10:00:01",
            r#"{"kind":"message","role":"assistant","content":[{"type":"thinking","text":"hm\n\n## Query 9"},{"type":"tool_call","id":"c","name":"read","input":{"path": "a"}}],"latency_ms":400,"usage":{"input":1,"output":2}}"#,
        ),
        (
            "10:00:02",
            r#"{"kind":"message","role":"tool","content":[{"type":"tool_result","call_id":"c","content":"a ```` b\n","is_error":true}]}"#,
        ),
        (
            "10:00:03",
            r#"{"kind":"message","role":"assistant","content":[{"type":"text","text":"There."},{"type":"image","x":1}],"latency_ms":600,"usage":{"input":10,"output":20},"incomplete":true}"#,
        ),
    ]);
    assert_eq!(
        text,
        "\
## Query 1 (10:00:00)
**You (ada):** Look

[attachment: a.png, image/png, 2,048 bytes]

**Assistant:**

> hm
>
> ## Query 9

**Tool call:** read

```json
{\"path\": \"a\"}
```

**Tool error:**

`````
a ```` b
`````

There.

**Other:**

```json
{\"type\":\"image\",\"x\":1}
```

[cut off]

*Time: 1.0s | Tokens: 33 (in: 11, out: 22)*

---

"
    );
}
