//! Reads the agent CLI's sessions: one JSON document each. The index is derived and not read.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Body, ImportEvent, IncomingItem, Json, Timestamp};

use super::emitter::Emitter;
use super::{ReadError, message_array, source_document};

#[derive(Deserialize)]
struct Document<'a> {
    metadata: Metadata,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(rename = "contextSummary")]
    summary: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    id: String,
    name: Option<String>,
    description: Option<String>,
    created_at: Option<String>,
    last_activity_at: Option<String>,
    provider: Option<String>,
    model: Option<String>,
}

pub(super) fn read(emitter: &mut Emitter<'_>) -> Result<(), ReadError> {
    let (agent, path) = (emitter.format, emitter.path);
    let Some(whole) = source_document::read_source_text(emitter)? else {
        return Ok(());
    };
    let document: Document<'_> = source_document::parse(emitter, &whole)?;
    let metadata = document.metadata;
    let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let began = time(metadata.created_at);
    let mut found = emitter.new_session(&metadata.id);
    found.at = began;
    emitter.emit_session(found);
    if let Some(name) = metadata.name.filter(|name| *name != metadata.id) {
        emitter.emit_title(0, &format!("name:{name}"), began, &name, true);
    }
    if let Some(description) = metadata.description {
        let word = format!("description:{description}");
        let description = Some(description);
        emitter.emit_body(0, &word, began, Body::Described { description });
    }
    {
        // The model is stored once for all messages.
        let mut with_model = |mut incoming: IncomingItem| {
            if let IncomingItem::Entry(entry) = &mut incoming
                && let ImportEvent::Body(Body::Message(message)) = &mut entry.event
                && message.role == throughline_model::Role::Assistant
            {
                let (model, provider) = (metadata.model.clone(), metadata.provider.clone());
                message.model = message.model.take().or(model);
                message.provider = message.provider.take().or(provider);
            }
            emitter.emit(incoming);
            emitter.check_stopped().is_ok()
        };
        let mut inner = Emitter::new(agent, path, &mut with_model);
        message_array::emit_messages(&mut inner, &document.messages)?;
    }
    if let Some(summary) = document.summary
        && let Ok(content) = Json::of(&summary)
    {
        // Shown to users on resuming and never sent, so it is stored as a document.
        let at = time(metadata.last_activity_at);
        super::aiarmy::emit_context(emitter, "contextSummary", at, content);
    }
    Ok(())
}
