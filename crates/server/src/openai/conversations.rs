//! Conversations API: create, retrieve, update, list and delete conversations.

use axum::Json as JsonResponse;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use throughline::{ConflictPolicy, Cursor, Expect, Json, NewSession, SessionFilter, SessionInfo};

use super::conversation::{Conversation, parse_limit};
use super::items::MAX_ADDED_ITEMS;
use super::metadata::{Metadata, or_empty};
use super::{OpenAiError, id, items};
use crate::extract::{Json as JsonBody, OptionalJson, Query};
use crate::{App, Caller};

/// Request body for creating a conversation.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CreateConversationBody {
    items: Option<Vec<Json>>,
    #[serde(default, deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
}

/// Creates a conversation.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    OptionalJson(body): OptionalJson<CreateConversationBody>,
) -> Result<JsonResponse<Value>, OpenAiError> {
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
    Ok(JsonResponse(conversation_view(&record.info, metadata)))
}

/// JSON representation of a conversation.
pub(super) fn conversation_view(info: &SessionInfo, metadata: Metadata) -> Value {
    json!({
        "id": id::conversation(&info.id),
        "object": "conversation",
        "created_at": info.created_at.as_second(),
        "metadata": metadata.into_value(),
    })
}

impl Conversation {
    /// JSON representation of this conversation.
    pub(super) async fn view(&self) -> Result<Value, OpenAiError> {
        let metadata = Metadata::load(&self.session, &self.record).await?;
        Ok(conversation_view(&self.record.info, metadata))
    }
}

/// Returns a conversation.
pub(super) async fn retrieve(
    conversation: Conversation,
) -> Result<JsonResponse<Value>, OpenAiError> {
    conversation.view().await.map(JsonResponse)
}

/// Request body for updating a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct UpdateConversationBody {
    #[serde(deserialize_with = "or_empty")]
    metadata: Map<String, Value>,
}

/// Replaces the metadata of a conversation.
pub(super) async fn update(
    conversation: Conversation,
    JsonBody(body): JsonBody<UpdateConversationBody>,
) -> Result<JsonResponse<Value>, OpenAiError> {
    let metadata = Metadata::parse(body.metadata)?;
    conversation
        .session
        .append(metadata.to_entry_body())
        .await?;
    Ok(JsonResponse(conversation_view(
        &conversation.record.info,
        metadata,
    )))
}

/// Moves a conversation to the trash.
pub(super) async fn delete(conversation: Conversation) -> Result<JsonResponse<Value>, OpenAiError> {
    let session = conversation.session.id();
    conversation.caller.tl.trash(session).await?;
    Ok(JsonResponse(json!({
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

/// Lists the caller's sessions as conversations, latest activity first.
pub(super) async fn list(
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<JsonResponse<Value>, OpenAiError> {
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
    for info in &page.items {
        let session = caller.tl.session_unchecked(&info.id);
        // Skip sessions that were deleted since they were listed.
        let Ok(record) = session.record().await else {
            continue;
        };
        data.push(conversation_view(
            info,
            Metadata::load(&session, &record).await?,
        ));
    }
    Ok(JsonResponse(json!({
        "object": "list",
        "first_id": data.first().map(|first| first["id"].clone()),
        "last_id": data.last().map(|last| last["id"].clone()),
        "has_more": page.next.is_some(),
        "data": data,
    })))
}
