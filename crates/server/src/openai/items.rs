//! Items API: add, list, retrieve and delete items of a conversation.

use axum::Json as JsonResponse;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::{
    AppendKind, ConflictPolicy, EntryId, Expect, Json, Lineage, Message, NewEntry, ReadRange, Seq,
    Session,
};

use super::conversation::{Conversation, LocatedItem, Order, parse_limit};
use super::item::{Item, NewItem, parse_item};
use super::{OpenAiError, id};
use crate::App;
use crate::extract::{Json as JsonBody, Query, path_param};

/// Maximum number of items added at once.
pub(super) const MAX_ADDED_ITEMS: usize = 20;

/// Parses items; `param` is their location in the request, for error messages.
pub(super) fn parse_items(
    items: &[Json],
    param: &str,
    most: usize,
) -> Result<Vec<NewItem>, OpenAiError> {
    if items.len() > most {
        let why = format!("too many items: at most {most}, found {}", items.len());
        return Err(OpenAiError::invalid_param(param, why));
    }
    let items = items.iter().enumerate();
    items
        .map(|(at, item)| parse_item(item, &format!("{param}[{at}]")))
        .collect()
}

/// One page of items.
#[derive(Debug, Serialize)]
pub(super) struct ItemList {
    object: &'static str,
    data: Vec<Json>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

impl ItemList {
    fn from_items(items: Vec<Item>, has_more: bool) -> Self {
        Self {
            object: "list",
            first_id: items.first().map(|item| item.id.clone()),
            last_id: items.last().map(|item| item.id.clone()),
            has_more,
            data: items.into_iter().map(|item| item.json).collect(),
        }
    }
}

/// Request body for adding items.
#[derive(Debug, Deserialize)]
pub(super) struct AddItemsBody {
    items: Vec<Json>,
}

/// Items to append to a conversation: those that are not stored yet.
#[derive(Debug, Default)]
pub(super) struct ItemAppendPlan {
    /// The new items, as entries.
    pub(super) entries: Vec<NewEntry>,
    /// Positions of items that are already stored, with `None` for each new one.
    known_seqs: Vec<Option<Seq>>,
}

impl Conversation {
    /// Separates new items from those stored under the same id, which are not appended twice. A
    /// different item under a known id is refused.
    pub(super) async fn plan_append(
        &self,
        items: Vec<NewItem>,
        param: &str,
    ) -> Result<ItemAppendPlan, OpenAiError> {
        let mut fresh = ItemAppendPlan::default();
        for (at, item) in items.into_iter().enumerate() {
            let mut known = None;
            if let Some(own) = item.id() {
                known = self.find_by_entry_id(own).await?;
            }
            match known {
                Some(found) if sole_message(&found) == Some(item.message()) => {
                    fresh.known_seqs.push(Some(found.entry.seq));
                    continue;
                }
                Some(_) => {
                    let why = "another item in this conversation has that id";
                    return Err(OpenAiError::invalid_param(format!("{param}[{at}].id"), why));
                }
                None => {}
            }
            item.store_files(&self.caller.tl).await?;
            // A deleted entry stays in the log and keeps its id, so the id cannot be reused.
            let keep_id = match item.id() {
                None => false,
                Some(own) => {
                    let entry = EntryId::from_external(self.session.id(), own);
                    let taken = |new: &NewEntry| new.id == entry;
                    if fresh.entries.iter().any(taken) {
                        let why = "two items in this request have that id";
                        return Err(OpenAiError::invalid_param(format!("{param}[{at}].id"), why));
                    }
                    self.locate_entries(&[entry]).await?.is_empty()
                }
            };
            fresh.entries.push(item.into_entry(&self.session, keep_id));
            fresh.known_seqs.push(None);
        }
        Ok(fresh)
    }

    /// Finds an item whose id contains its entry.
    async fn find_by_entry_id(&self, item: &str) -> Result<Option<LocatedItem>, OpenAiError> {
        let mut ids = vec![EntryId::from_external(self.session.id(), item)];
        ids.extend(id::parse_item(item));
        match self.locate_entries(&ids).await?.as_slice() {
            [] => Ok(None),
            _ => self.find(item).await,
        }
    }
}

/// Returns the message of an entry that consists of one item.
fn sole_message(found: &LocatedItem) -> Option<&Message> {
    found.entry.message().filter(|_| found.items.len() == 1)
}

/// Adds items to a conversation; they are durable when the request succeeds.
pub(super) async fn add(
    State(app): State<App>,
    conversation: Conversation,
    JsonBody(body): JsonBody<AddItemsBody>,
) -> Result<JsonResponse<ItemList>, OpenAiError> {
    let items = parse_items(&body.items, "items", MAX_ADDED_ITEMS)?;
    if items.is_empty() {
        return Err(OpenAiError::invalid_param(
            "items",
            "there are no items to add",
        ));
    }
    conversation.check_unlocked(&app)?;
    let fresh = conversation.plan_append(items, "items").await?;
    let mut added = Vec::new().into_iter();
    if !fresh.entries.is_empty() {
        let session = &conversation.session;
        let appended = session
            .append_all(fresh.entries, Expect::Any, ConflictPolicy::Reject)
            .await?;
        debug_assert_ne!(appended.kind, AppendKind::Forked);
        added = appended.entries.into_iter();
    }
    // Include the new entries in the visible range.
    let conversation = Conversation {
        record: conversation.session.record().await?,
        ..conversation
    };
    let mut shown = Vec::new();
    for place in fresh.known_seqs {
        let entry = match place {
            None => added.next(),
            Some(seq) => {
                let read = ReadRange::between(seq, seq, 1);
                conversation.session.read(read).await?.pop()
            }
        };
        if let Some(entry) = entry {
            shown.extend(conversation.items_of(&entry).await?);
        }
    }
    Ok(JsonResponse(ItemList::from_items(shown, false)))
}

/// Which items to list.
#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    order: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

/// Lists one page of a conversation's items.
pub(super) async fn list(
    conversation: Conversation,
    Query(query): Query<ListQuery>,
) -> Result<JsonResponse<ItemList>, OpenAiError> {
    let order = Order::parse(query.order.as_deref())?;
    let limit = parse_limit(query.limit.as_deref())?;
    let after = match &query.after {
        None => None,
        Some(after) => {
            let found = conversation.find(after).await?;
            Some(found.ok_or_else(|| OpenAiError::item_not_found(after))?)
        }
    };
    let (items, more) = conversation.read_page(order, after.as_ref(), limit).await?;
    Ok(JsonResponse(ItemList::from_items(items, more)))
}

/// The item id in the path.
pub(super) struct ItemId(String);

impl FromRequestParts<App> for ItemId {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenAiError> {
        Ok(Self(path_param(parts, app, "item").await?))
    }
}

/// Returns an item.
pub(super) async fn retrieve(
    conversation: Conversation,
    ItemId(item): ItemId,
) -> Result<JsonResponse<Json>, OpenAiError> {
    let found = conversation.find(&item).await?;
    let found = found.ok_or_else(|| OpenAiError::item_not_found(&item))?;
    Ok(JsonResponse(found.item().json.clone()))
}

/// Deletes an item permanently: its entry is erased, here and in forks that share it.
pub(super) async fn delete(
    State(app): State<App>,
    conversation: Conversation,
    ItemId(item): ItemId,
) -> Result<JsonResponse<Value>, OpenAiError> {
    conversation.check_unlocked(&app)?;
    let found = conversation.find(&item).await?;
    let found = found.ok_or_else(|| OpenAiError::item_not_found(&item))?;
    let (session, seq) = (&conversation.session, found.entry.seq);
    if let Lineage::Forked { session, at } = &conversation.record.info.lineage
        && seq <= *at
    {
        let origin = id::conversation(session);
        let why = format!(
            "this item is shared with {origin}, which this conversation was forked from; delete \
             it there"
        );
        return Err(OpenAiError::invalid_param("item_id", why));
    }
    if found.entry.message().is_none() {
        let why = "this item is the summary the session continues from, and cannot be deleted";
        return Err(OpenAiError::invalid_param("item_id", why));
    }
    if found.items.len() > 1 {
        if !conversation.is_last(seq).await? {
            let why = "this item is part of an answer with later messages; single items can be \
                       deleted only from the last answer";
            return Err(OpenAiError::invalid_param("item_id", why));
        }
        // Append the remaining items before erasing the entry, so that nothing is lost in between.
        let stays = remaining_entries(session, &found);
        session
            .append_all(
                stays,
                Expect::At(conversation.record.info.head),
                ConflictPolicy::Reject,
            )
            .await?;
    }
    session.erase(&[seq], Some("deleted as an item")).await?;
    app.hub.wake();
    conversation.view().await.map(JsonResponse)
}

/// The remaining items of an entry, each as an entry with the item's id.
fn remaining_entries(session: &Session, found: &LocatedItem) -> Vec<NewEntry> {
    let Some(message) = found.entry.message() else {
        return Vec::new();
    };
    let items = found.items.iter().enumerate();
    let others = items.filter(|(index, _)| *index != found.index);
    others
        .enumerate()
        .map(|(nth, (_, item))| {
            let remaining = Message {
                content: item.blocks.clone(),
                // Count the usage once.
                usage: message.usage.filter(|_| nth == 0),
                ..message.clone()
            };
            NewEntry {
                id: EntryId::from_external(session.id(), &item.id),
                external_id: Some(item.id.clone()),
                author: found.entry.author.clone(),
                ..session.new_entry(remaining)
            }
        })
        .collect()
}
