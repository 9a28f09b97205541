//! The agent CLI: a JSON document a session. Its index can be made from them, and is not read.

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Body, Happened, Incoming, Json, Timestamp};

use super::telling::Telling;
use super::{ReadError, document, plain};

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

pub(super) fn read(telling: &mut Telling<'_>) -> Result<(), ReadError> {
    let (agent, path) = (telling.agent, telling.path);
    let Some(whole) = document::whole(telling)? else {
        return Ok(());
    };
    let document: Document<'_> = document::parsed(telling, &whole)?;
    let metadata = document.metadata;
    let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let began = time(metadata.created_at);
    let mut found = telling.found(&metadata.id);
    found.at = began;
    telling.session(found);
    if let Some(name) = metadata.name.filter(|name| *name != metadata.id) {
        telling.titled(0, &format!("name:{name}"), began, &name, true);
    }
    if let Some(description) = metadata.description {
        let word = format!("description:{description}");
        let description = Some(description);
        telling.body(0, &word, began, Body::Described { description });
    }
    {
        // The model stands once for all messages.
        let mut with_model = |mut incoming: Incoming| {
            if let Incoming::Entry(entry) = &mut incoming
                && let Happened::Body(Body::Message(message)) = &mut entry.what
                && message.role == throughline_model::Role::Assistant
            {
                let (model, provider) = (metadata.model.clone(), metadata.provider.clone());
                message.model = message.model.take().or(model);
                message.provider = message.provider.take().or(provider);
            }
            telling.tell(incoming);
            telling.go_on().is_ok()
        };
        let mut inner = Telling::new(agent, path, &mut with_model);
        plain::tell_all(&mut inner, &document.messages)?;
    }
    if let Some(summary) = document.summary
        && let Ok(content) = Json::of(&summary)
    {
        // Shown to people on resuming and never sent: a document of the session.
        let at = time(metadata.last_activity_at);
        super::aiarmy::set(telling, "contextSummary", at, content);
    }
    Ok(())
}
