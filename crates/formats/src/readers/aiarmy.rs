//! Reads AIarmy sessions: a folder with four JSON documents each.
//!
//! `full.json` has all messages; `working.json` the agent's working set, in which the
//! summary replaces all but the last twenty messages.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Body, Digest, EntryIdentity, ImportEvent, Json, Summary, Timestamp};

use super::emitter::Emitter;
use super::message_array::emit_messages;
use super::source_document::read_sibling_json;
use super::{ReadError, source_document};

/// Number of recent messages that the summary does not cover.
const RECENT_MESSAGES: usize = 20;

#[derive(Deserialize)]
struct FullDocument<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    context: Option<Json>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WorkingDocument {
    summary: String,
    pinned_facts: Vec<String>,
    decisions: Vec<String>,
    open_tasks: Vec<String>,
    files_touched: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    session_id: Option<String>,
    created_at: Option<String>,
    last_updated: Option<String>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let path = emitter.path;
    let folder = path.parent().unwrap_or(path).to_owned();
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let full: FullDocument<'_> = source_document::parse(emitter, &whole)?;
    let metadata: Metadata = read_sibling_json(emitter, &folder.join("metadata.json"));
    let state: Metadata = read_sibling_json(emitter, &folder.join("state.json"));
    let working: WorkingDocument = read_sibling_json(emitter, &folder.join("working.json"));
    let name = folder.file_name().unwrap_or_default().to_string_lossy();

    let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let mut found = emitter.new_session(metadata.session_id.unwrap_or_else(|| name.into_owned()));
    found.at = time(metadata.created_at).or(time(state.created_at));
    let began = found.at;
    let updated = time(metadata.last_updated);
    emitter.emit_session(found);
    emit_messages(emitter, &full.messages)?;

    let at = updated.or(began);
    if let Some(context) = full.context.filter(|context| context.as_str() != "{}") {
        emit_context(emitter, "context", at, context);
    }
    for text in &working.pinned_facts {
        let word = format!("pin:{}", Digest::of(text.as_bytes()));
        emitter.emit_body(0, &word, at, Body::Pinned { text: text.clone() });
    }
    for text in &working.decisions {
        let word = format!("decision:{}", Digest::of(text.as_bytes()));
        emitter.emit_body(0, &word, at, Body::Decided { text: text.clone() });
    }
    let summary = Summary {
        background: working.summary,
        open_tasks: working.open_tasks,
        files_touched: working.files_touched,
        ..Summary::default()
    };
    if !summary.is_empty() {
        let count = full.messages.len();
        let hides = count > RECENT_MESSAGES && !summary.background.is_empty();
        let keeps = hides.then(|| (count - RECENT_MESSAGES + 1).to_string());
        emit_summary(emitter, at, summary, keeps);
    }
    Ok(())
}

/// Emits a context document, identified by its content.
pub(super) fn emit_context(
    emitter: &mut Emitter<'_>,
    name: &str,
    at: Option<Timestamp>,
    content: Json,
) {
    let word = format!("{name}:{}", Digest::of(content.as_str().as_bytes()));
    let body = Body::ContextSet {
        document: name.to_owned(),
        content: Some(content),
    };
    emitter.emit_body(0, &word, at, body);
}

/// Emits a summary, identified by its content. It hides the entries before `keeps`, if set.
pub(super) fn emit_summary(
    emitter: &mut Emitter<'_>,
    at: Option<Timestamp>,
    summary: Summary,
    keeps: Option<String>,
) {
    let encoded = serde_json::to_vec(&summary).unwrap_or_default();
    let identity = EntryIdentity::Position(format!("summary:{}", Digest::of(&encoded)));
    let by = emitter.format.name().to_owned();
    let what = match keeps {
        Some(keeps) => ImportEvent::Compacted {
            summary,
            by,
            keeps: Some(keeps),
            usage: None,
        },
        None => ImportEvent::Summarized { summary, by },
    };
    emitter.emit_event(0, identity, at, what);
}
