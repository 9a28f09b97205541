//! Reads dagent sessions: five JSON documents each.
//!
//! A compaction empties the chat, so the messages that the checkpoint covers are in no file.
//! The checkpoint is emitted before the remaining messages.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{
    AgentRef, Body, CheckpointSummary, EntryIdentity, ImportEvent, Json, Summary, Timestamp,
};

use super::aiarmy::emit_context;
use super::emitter::Emitter;
use super::message_array::emit_messages;
use super::source_document::read_sibling_json;
use super::{ReadError, SourceFormat, source_document};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    id: String,
    agent_type: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    status: Option<String>,
    #[serde(default)]
    files: Files,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Files {
    chat: Option<String>,
    checkpoint: Option<String>,
    context: Option<String>,
    agent_description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Checkpoint {
    version: u64,
    updated_at: Option<String>,
    summary: CheckpointSummary,
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = emitter.path;
    let folder = path.parent().unwrap_or(path).to_owned();
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let session: Session = source_document::parse(emitter, &whole)?;
    let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let began = time(session.created_at);
    let file = |named: Option<String>, kind: &str| {
        // Only file names: a document cannot make us read another folder.
        let named = named.filter(|name| !name.contains(['/', '\\']));
        folder.join(named.unwrap_or_else(|| format!("{kind}_{}.json", session.id)))
    };
    let chat = file(session.files.chat, "chat");
    let checkpoint = file(session.files.checkpoint, "checkpoint");
    let context = file(session.files.context, "context");
    let description = file(session.files.agent_description, "agent-description");

    let mut found = emitter.new_session(&session.id);
    found.at = began;
    if let Some(name) = session.agent_type {
        let path = None;
        found.agent = Some(AgentRef { name, path });
    }
    emitter.emit_session(found);
    for (name, file) in [("agent-description", description), ("context", context)] {
        let document: Option<Json> = read_sibling_json(emitter, &file);
        if let Some(document) = document {
            emit_context(emitter, name, began, document);
        }
    }
    let checkpoint: Checkpoint = read_sibling_json(emitter, &checkpoint);
    if checkpoint.version > 0 {
        let from = checkpoint.summary;
        let what = ImportEvent::Compacted {
            summary: Summary {
                completed: from.completed,
                in_progress: from.in_progress,
                pending: from.pending,
                blockers: from.blockers,
                decisions: from.decisions,
                ..Summary::default()
            },
            by: SourceFormat::Dagent.name().to_owned(),
            keeps: None,
            usage: None,
        };
        let identity = EntryIdentity::Position(format!("checkpoint:{}", checkpoint.version));
        emitter.emit_event(0, identity, time(checkpoint.updated_at), what);
    }
    match source_document::read_sibling_text(emitter, &chat) {
        Some(text) => match serde_json::from_str::<Chat<'_>>(&text) {
            Ok(chat) => emit_messages(emitter, &chat.messages)?,
            Err(error) => emitter.emit_damaged(0, format!("the chat file is not valid: {error}")),
        },
        None => emitter.emit_damaged(0, "the chat file is missing or unreadable"),
    }
    if session.status.as_deref() == Some("archived") {
        let at = time(session.updated_at);
        emitter.emit_body(0, "archived", at, Body::Archived);
    }
    Ok(())
}
