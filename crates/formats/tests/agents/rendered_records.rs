//! Test helpers that read a source and render its items as text.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use throughline_formats::{SourceCursor, SourceFormat, read_source};
use throughline_model::{
    Block, Body, Content, Digest, EntryId, EntryIdentity, GENESIS, ImportEvent, IncomingEntry,
    IncomingItem, IncomingOrigin, Message, Seq, StoredEntry, Timestamp, encode_payload,
};

/// Returns the path of a fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.join("tests/agents/fixtures").join(name)
}

/// Reads all items of a source.
pub(crate) fn read_all(agent: SourceFormat, path: &Path) -> Vec<IncomingItem> {
    read_from(agent, path, None).0
}

/// Reads the items from a cursor on; also returns the next cursor.
pub(crate) fn read_from(
    agent: SourceFormat,
    path: &Path,
    bookmark: Option<&SourceCursor>,
) -> (Vec<IncomingItem>, Option<SourceCursor>) {
    let mut output = Vec::new();
    let next = read_source(agent, path, bookmark, &mut |incoming| {
        output.push(incoming);
        true
    });
    (output, next.unwrap())
}

/// Checks that every entry can be stored and decodes to the same value.
pub(crate) fn assert_storable(output: &[IncomingItem]) {
    for incoming in output {
        if let IncomingItem::Entry(entry) = incoming
            && let ImportEvent::Body(body) = &entry.event
        {
            let payload = encode_payload(body, None, None, None).unwrap();
            let hash = Digest::of(payload.as_bytes());
            let id = EntryId::from_bytes([1; 16]);
            let at = Timestamp::UNIX_EPOCH;
            let stored = StoredEntry::from_payload(&GENESIS, Seq(1), id, at, payload, &hash);
            let decoded = stored.decode();
            let decoded = decoded.unwrap_or_else(|error| panic!("{body:?}: {error:?}"));
            assert_eq!(&decoded.body, body);
        }
    }
}

/// Reads all items of a source and renders them as text.
pub(crate) fn read_to_text(agent: SourceFormat, path: &Path) -> String {
    render_records(&read_all(agent, path))
}

pub(crate) fn render_records(output: &[IncomingItem]) -> String {
    let mut text = String::new();
    for incoming in output {
        match incoming {
            IncomingItem::Session(session) => {
                let _ = write!(text, "session {}", session.id);
                if let Some(at) = session.at {
                    let _ = write!(text, " at {at}");
                }
                if let Some(folder) = &session.workspace {
                    let _ = write!(text, " in {folder}");
                }
                if let Some(remote) = &session.remote {
                    let _ = write!(text, " of {remote}");
                }
                match &session.origin {
                    Some(IncomingOrigin::Forked { session, at }) => {
                        let at = at.as_deref().unwrap_or("?");
                        let _ = write!(text, " forked from {session} at {at}");
                    }
                    Some(IncomingOrigin::Started { session }) => {
                        let _ = write!(text, " started by {session}");
                    }
                    None => {}
                }
                let agent = session.agent.as_ref().map(|agent| agent.name.as_str());
                let _ = writeln!(text, " with {}", agent.unwrap_or("nobody"));
            }
            IncomingItem::Entry(entry) => entry_text(&mut text, entry),
            IncomingItem::Blob(bytes) => {
                let _ = writeln!(text, "  blob of {} bytes", bytes.len());
            }
            IncomingItem::Skipped(passed) => {
                let how = if passed.damaged { "damaged" } else { "passed" };
                let _ = writeln!(text, "  {how} {}: {}", passed.position, passed.description);
            }
        }
    }
    text
}

fn entry_text(text: &mut String, entry: &IncomingEntry) {
    let id = match &entry.identity {
        EntryIdentity::External(own) => own.clone(),
        EntryIdentity::Position(place) => format!("@{}", shorten_digest(place)),
        EntryIdentity::Content => "=".to_owned(),
    };
    let at = entry.at.map(|at| format!(" {at}")).unwrap_or_default();
    let what = match &entry.event {
        ImportEvent::Body(Body::Message(message)) => message_text(message),
        ImportEvent::Body(body) => serde_json::to_string(body).unwrap(),
        ImportEvent::Compacted {
            summary, by, keeps, ..
        } => {
            let summary = serde_json::to_string(summary).unwrap();
            let keeps = keeps.as_deref().unwrap_or("nothing");
            format!("compacted by {by}, keeps {keeps}: {summary}")
        }
        ImportEvent::Summarized { summary, by } => {
            let summary = serde_json::to_string(summary).unwrap();
            format!("summarized by {by}: {summary}")
        }
        ImportEvent::Rewound { to } => format!("rewound to {}", to.as_deref().unwrap_or("nothing")),
        ImportEvent::Titled { title, by_person } => {
            let by = if *by_person {
                "a person"
            } else {
                "the program"
            };
            format!("titled {title:?} by {by}")
        }
        ImportEvent::Tagged(tags) => format!("tagged {}", tags.join(", ")),
        ImportEvent::Untagged(tags) => format!("untagged {}", tags.join(", ")),
    };
    let author = entry.author.as_deref().map(|author| format!(" ({author})"));
    let author = author.unwrap_or_default();
    let _ = writeln!(text, "  [{id}]{at}{author} {what}");
}

/// Shortens digests, which are long and meaningless.
fn shorten_digest(place: &str) -> String {
    match place.split_once(':') {
        Some((kind, digest)) if digest.len() == 64 => format!("{kind}:…"),
        _ => place.to_owned(),
    }
}

fn message_text(message: &Message) -> String {
    let mut text = message.role.to_string();
    if let Some(model) = &message.model {
        let _ = write!(text, " {model}");
    }
    if let Some(provider) = &message.provider {
        let _ = write!(text, "@{provider}");
    }
    if let Some(usage) = &message.usage {
        let _ = write!(text, " {}+{}", usage.input, usage.output);
        if usage.cache_read + usage.cache_write > 0 {
            let _ = write!(text, " (cache {} {})", usage.cache_read, usage.cache_write);
        }
    }
    if let Some(millis) = message.latency_ms {
        let _ = write!(text, " {millis}ms");
    }
    if message.incomplete {
        text.push_str(" cut off");
    }
    text.push_str(": ");
    text.push_str(&content_text(&message.content));
    text
}

fn content_text(content: &Content) -> String {
    let blocks = content.0.iter().map(|block| match block {
        Block::Text(text) => format!("{text:?}"),
        Block::Thinking { text, signature } => match signature {
            Some(signature) => format!("thinks {text:?} signed {signature}"),
            None => format!("thinks {text:?}"),
        },
        Block::ToolCall(call) => format!("calls {} {}({})", call.id, call.name, call.input),
        Block::ToolResult(result) => {
            let how = if result.is_error {
                "failed"
            } else {
                "answered"
            };
            format!(
                "{} {how} <{}>",
                result.call_id,
                content_text(&result.content)
            )
        }
        Block::Attachment(file) => format!("file {} of {}", file.media_type, file.bytes),
        Block::Foreign(json) => format!("foreign {json}"),
        _ => "?".to_owned(),
    });
    blocks.collect::<Vec<_>>().join(" · ")
}
