//! Conversations: made, looked at, noted about, listed and thrown away.

use axum::Json as Answer;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use throughline::{Card, Conflict, Cursor, Expect, Filter, Json, NewSession};

use super::items::MOST_ITEMS;
use super::log::{Conversation, limit};
use super::metadata::{Metadata, or_empty};
use super::{Refusal, id, items};
use crate::extract::{Json as Sent, MaybeJson, Query};
use crate::{App, Caller};

/// What a conversation starts with.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CreateBody {
    items: Option<Vec<Json>>,
    #[serde(default, deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
}

/// Makes a conversation.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    MaybeJson(body): MaybeJson<CreateBody>,
) -> Result<Answer<Value>, Refusal> {
    let metadata = Metadata::given(body.metadata)?;
    let items = items::understood(&body.items.unwrap_or_default(), "items", MOST_ITEMS)?;
    for item in &items {
        item.keep_files(&caller.tl).await?;
    }
    let session = caller.tl.create(NewSession::default()).await?;
    let mut entries = Vec::new();
    if !metadata.is_empty() {
        entries.push(session.entry(metadata.body()));
    }
    entries.extend(items.into_iter().map(|item| item.entry(&session, true)));
    if !entries.is_empty() {
        session
            .append_all(entries, Expect::Any, Conflict::Reject)
            .await?;
    }
    app.hub.wake();
    let record = session.record().await?;
    Ok(Answer(view(&record.card, metadata)))
}

/// A conversation as it is told.
pub(super) fn view(card: &Card, metadata: Metadata) -> Value {
    json!({
        "id": id::conversation(&card.id),
        "object": "conversation",
        "created_at": card.created_at.as_second(),
        "metadata": metadata.into_value(),
    })
}

impl Conversation {
    /// It, as it is told.
    pub(super) async fn view(&self) -> Result<Value, Refusal> {
        let metadata = Metadata::of(&self.session, &self.record).await?;
        Ok(view(&self.record.card, metadata))
    }
}

/// Looks at a conversation.
pub(super) async fn retrieve(conversation: Conversation) -> Result<Answer<Value>, Refusal> {
    conversation.view().await.map(Answer)
}

/// What to note about a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct UpdateBody {
    #[serde(deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
}

/// Replaces what is noted about a conversation.
pub(super) async fn update(
    conversation: Conversation,
    Sent(body): Sent<UpdateBody>,
) -> Result<Answer<Value>, Refusal> {
    let metadata = Metadata::given(body.metadata)?;
    conversation.session.append(metadata.body()).await?;
    Ok(Answer(view(&conversation.record.card, metadata)))
}

/// Puts a conversation into the trash.
pub(super) async fn delete(conversation: Conversation) -> Result<Answer<Value>, Refusal> {
    let session = conversation.session.id();
    conversation.caller.tl.trash(session).await?;
    Ok(Answer(json!({
        "id": id::conversation(session),
        "object": "conversation.deleted",
        "deleted": true,
    })))
}

/// Which conversations to list.
#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    after: Option<String>,
    limit: Option<String>,
}

/// The caller's sessions as conversations, latest activity first.
pub(super) async fn list(
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Answer<Value>, Refusal> {
    let limit = limit(query.limit.as_deref())?;
    let after = match &query.after {
        None => None,
        Some(after) => {
            let after = Conversation::open(caller.clone(), after).await?;
            Some(Cursor::after(&after.record.card))
        }
    };
    let filter = Filter::default();
    let page = caller.tl.list(&filter, after.as_ref(), limit).await?;
    let mut data = Vec::with_capacity(page.items.len());
    for card in &page.items {
        let session = caller.tl.unopened(&card.id);
        // Thrown away since it was listed: then it is not there.
        let Ok(record) = session.record().await else {
            continue;
        };
        data.push(view(card, Metadata::of(&session, &record).await?));
    }
    Ok(Answer(json!({
        "object": "list",
        "first_id": data.first().map(|first| first["id"].clone()),
        "last_id": data.last().map(|last| last["id"].clone()),
        "has_more": page.next.is_some(),
        "data": data,
    })))
}
