//! The agent CLI: a JSON document a session. Its index can be made from them, and is not read.

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

pub(super) fn read(telling: &mut Emitter<'_>) -> Result<(), ReadError> {
    let (agent, path) = (telling.format, telling.path);
    let Some(whole) = source_document::read_source_text(telling)? else {
        return Ok(());
    };
    let document: Document<'_> = source_document::parse(telling, &whole)?;
    let metadata = document.metadata;
    let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let began = time(metadata.created_at);
    let mut found = telling.new_session(&metadata.id);
    found.at = began;
    telling.emit_session(found);
    if let Some(name) = metadata.name.filter(|name| *name != metadata.id) {
        telling.emit_title(0, &format!("name:{name}"), began, &name, true);
    }
    if let Some(description) = metadata.description {
        let word = format!("description:{description}");
        let description = Some(description);
        telling.emit_body(0, &word, began, Body::Described { description });
    }
    {
        // The model stands once for all messages.
        let mut with_model = |mut incoming: IncomingItem| {
            if let IncomingItem::Entry(entry) = &mut incoming
                && let ImportEvent::Body(Body::Message(message)) = &mut entry.event
                && message.role == throughline_model::Role::Assistant
            {
                let (model, provider) = (metadata.model.clone(), metadata.provider.clone());
                message.model = message.model.take().or(model);
                message.provider = message.provider.take().or(provider);
            }
            telling.emit(incoming);
            telling.check_stopped().is_ok()
        };
        let mut inner = Emitter::new(agent, path, &mut with_model);
        message_array::emit_messages(&mut inner, &document.messages)?;
    }
    if let Some(summary) = document.summary
        && let Ok(content) = Json::of(&summary)
    {
        // Shown to people on resuming and never sent: a document of the session.
        let at = time(metadata.last_activity_at);
        super::aiarmy::emit_context(telling, "contextSummary", at, content);
    }
    Ok(())
}
