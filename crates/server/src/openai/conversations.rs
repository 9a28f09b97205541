//! Conversations: made, looked at, noted about, listed and thrown away.

use axum::Json as Answer;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use throughline::{ConflictPolicy, Cursor, Expect, Json, NewSession, SessionFilter, SessionInfo};

use super::conversation::{Conversation, parse_limit};
use super::items::MAX_ADDED_ITEMS;
use super::metadata::{Metadata, or_empty};
use super::{OpenAiError, id, items};
use crate::extract::{Json as Sent, OptionalJson, Query};
use crate::{App, Caller};

/// What a conversation starts with.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CreateConversationBody {
    items: Option<Vec<Json>>,
    #[serde(default, deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
}

/// Makes a conversation.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    OptionalJson(body): OptionalJson<CreateConversationBody>,
) -> Result<Answer<Value>, OpenAiError> {
    let metadata = Metadata::parse(body.metadata)?;
    let items = items::parse_items(&body.items.unwrap_or_default(), "items", MAX_ADDED_ITEMS)?;
    for item in &items {
        item.store_files(&caller.tl).await?;
    }
    let session = caller.tl.create(NewSession::default()).await?;
    let mut entries = Vec::new();
    if !metadata.is_empty() {
        entries.push(session.new_entry(metadata.to_entry_body()));
    }
    entries.extend(
        items
            .into_iter()
            .map(|item| item.into_entry(&session, true)),
    );
    if !entries.is_empty() {
        session
            .append_all(entries, Expect::Any, ConflictPolicy::Reject)
            .await?;
    }
    app.hub.wake();
    let record = session.record().await?;
    Ok(Answer(conversation_view(&record.info, metadata)))
}

/// A conversation as it is told.
pub(super) fn conversation_view(card: &SessionInfo, metadata: Metadata) -> Value {
    json!({
        "id": id::conversation(&card.id),
        "object": "conversation",
        "created_at": card.created_at.as_second(),
        "metadata": metadata.into_value(),
    })
}

impl Conversation {
    /// It, as it is told.
    pub(super) async fn view(&self) -> Result<Value, OpenAiError> {
        let metadata = Metadata::load(&self.session, &self.record).await?;
        Ok(conversation_view(&self.record.info, metadata))
    }
}

/// Looks at a conversation.
pub(super) async fn retrieve(conversation: Conversation) -> Result<Answer<Value>, OpenAiError> {
    conversation.view().await.map(Answer)
}

/// What to note about a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct UpdateConversationBody {
    #[serde(deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
}

/// Replaces what is noted about a conversation.
pub(super) async fn update(
    conversation: Conversation,
    Sent(body): Sent<UpdateConversationBody>,
) -> Result<Answer<Value>, OpenAiError> {
    let metadata = Metadata::parse(body.metadata)?;
    conversation
        .session
        .append(metadata.to_entry_body())
        .await?;
    Ok(Answer(conversation_view(
        &conversation.record.info,
        metadata,
    )))
}

/// Puts a conversation into the trash.
pub(super) async fn delete(conversation: Conversation) -> Result<Answer<Value>, OpenAiError> {
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
) -> Result<Answer<Value>, OpenAiError> {
    let limit = parse_limit(query.limit.as_deref())?;
    let after = match &query.after {
        None => None,
        Some(after) => {
            let after = Conversation::open(caller.clone(), after).await?;
            Some(Cursor::after(&after.record.info))
        }
    };
    let filter = SessionFilter::default();
    let page = caller.tl.list(&filter, after.as_ref(), limit).await?;
    let mut data = Vec::with_capacity(page.items.len());
    for card in &page.items {
        let session = caller.tl.session_unchecked(&card.id);
        // Thrown away since it was listed: then it is not there.
        let Ok(record) = session.record().await else {
            continue;
        };
        data.push(conversation_view(
            card,
            Metadata::load(&session, &record).await?,
        ));
    }
    Ok(Answer(json!({
        "object": "list",
        "first_id": data.first().map(|first| first["id"].clone()),
        "last_id": data.last().map(|last| last["id"].clone()),
        "has_more": page.next.is_some(),
        "data": data,
    })))
}
