//! What a reader tells, as text.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use throughline_formats::{Agent, Bookmark, read_source};
use throughline_model::{
    Block, Body, Content, Digest, EntryId, GENESIS, Happened, Identity, Incoming, IncomingEntry,
    Message, Origin, Seq, StoredEntry, Timestamp, encode,
};

/// A fixture's path.
pub(crate) fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.join("tests/agents/fixtures").join(name)
}

/// Everything that is told of a source.
pub(crate) fn all(agent: Agent, path: &Path) -> Vec<Incoming> {
    from(agent, path, None).0
}

/// What is told from a bookmark on, and the next bookmark.
pub(crate) fn from(
    agent: Agent,
    path: &Path,
    bookmark: Option<&Bookmark>,
) -> (Vec<Incoming>, Option<Bookmark>) {
    let mut told = Vec::new();
    let next = read_source(agent, path, bookmark, &mut |incoming| {
        told.push(incoming);
        true
    });
    (told, next.unwrap())
}

/// Checks that every entry that was read can be stored, and is decoded as it was read.
pub(crate) fn can_be_stored(told: &[Incoming]) {
    for incoming in told {
        if let Incoming::Entry(entry) = incoming
            && let Happened::Body(body) = &entry.what
        {
            let payload = encode(body, None, None, None).unwrap();
            let hash = Digest::of(payload.as_bytes());
            let id = EntryId::from_bytes([1; 16]);
            let at = Timestamp::UNIX_EPOCH;
            let stored = StoredEntry::chained(&GENESIS, Seq(1), id, at, payload, &hash);
            let decoded = stored.decode();
            let decoded = decoded.unwrap_or_else(|error| panic!("{body:?}: {error:?}"));
            assert_eq!(&decoded.body, body);
        }
    }
}

/// The same as text.
pub(crate) fn text(agent: Agent, path: &Path) -> String {
    written(&all(agent, path))
}

pub(crate) fn written(told: &[Incoming]) -> String {
    let mut text = String::new();
    for incoming in told {
        match incoming {
            Incoming::Session(session) => {
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
                    Some(Origin::Forked { session, at }) => {
                        let at = at.as_deref().unwrap_or("?");
                        let _ = write!(text, " forked from {session} at {at}");
                    }
                    Some(Origin::Started { session }) => {
                        let _ = write!(text, " started by {session}");
                    }
                    None => {}
                }
                let agent = session.agent.as_ref().map(|agent| agent.name.as_str());
                let _ = writeln!(text, " with {}", agent.unwrap_or("nobody"));
            }
            Incoming::Entry(entry) => entry_text(&mut text, entry),
            Incoming::Blob(bytes) => {
                let _ = writeln!(text, "  blob of {} bytes", bytes.len());
            }
            Incoming::Passed(passed) => {
                let how = if passed.damaged { "damaged" } else { "passed" };
                let _ = writeln!(text, "  {how} {}: {}", passed.place, passed.what);
            }
        }
    }
    text
}

fn entry_text(text: &mut String, entry: &IncomingEntry) {
    let id = match &entry.identity {
        Identity::Own(own) => own.clone(),
        Identity::Place(place) => format!("@{}", shortened(place)),
        Identity::Content => "=".to_owned(),
    };
    let at = entry.at.map(|at| format!(" {at}")).unwrap_or_default();
    let what = match &entry.what {
        Happened::Body(Body::Message(message)) => message_text(message),
        Happened::Body(body) => serde_json::to_string(body).unwrap(),
        Happened::Compacted {
            summary, by, keeps, ..
        } => {
            let summary = serde_json::to_string(summary).unwrap();
            let keeps = keeps.as_deref().unwrap_or("nothing");
            format!("compacted by {by}, keeps {keeps}: {summary}")
        }
        Happened::Summarized { summary, by } => {
            let summary = serde_json::to_string(summary).unwrap();
            format!("summarized by {by}: {summary}")
        }
        Happened::Rewound { to } => format!("rewound to {}", to.as_deref().unwrap_or("nothing")),
        Happened::Titled { title, by_person } => {
            let by = if *by_person {
                "a person"
            } else {
                "the program"
            };
            format!("titled {title:?} by {by}")
        }
        Happened::Tagged(tags) => format!("tagged {}", tags.join(", ")),
        Happened::Untagged(tags) => format!("untagged {}", tags.join(", ")),
    };
    let author = entry.author.as_deref().map(|author| format!(" ({author})"));
    let author = author.unwrap_or_default();
    let _ = writeln!(text, "  [{id}]{at}{author} {what}");
}

/// Digests are long and say nothing.
fn shortened(place: &str) -> String {
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
