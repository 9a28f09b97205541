//! The items of a conversation: added, listed, looked at and deleted.

use axum::Json as Answer;
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
use crate::extract::{Json as Sent, Query, path_param};

/// How many items may be added at once.
pub(super) const MAX_ADDED_ITEMS: usize = 20;

/// Understands items; `param` is where in the request they stand.
pub(super) fn parse_items(
    items: &[Json],
    param: &str,
    most: usize,
) -> Result<Vec<NewItem>, OpenAiError> {
    if items.len() > most {
        let why = format!(
            "at most {most} items are taken at once; there are {}",
            items.len()
        );
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

/// What to add.
#[derive(Debug, Deserialize)]
pub(super) struct AddItemsBody {
    items: Vec<Json>,
}

/// Items that are to be said in a conversation: those that are not there yet.
#[derive(Debug, Default)]
pub(super) struct ItemAppendPlan {
    /// The new ones, as entries.
    pub(super) entries: Vec<NewEntry>,
    /// Where those are that are there already, with the places of the new ones between.
    known_seqs: Vec<Option<Seq>>,
}

impl Conversation {
    /// Tells new items from those that are there under the same id, which are not said
    /// twice; another item under a known id is refused.
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
                    let why = "another item of this conversation has that id";
                    return Err(OpenAiError::invalid_param(format!("{param}[{at}].id"), why));
                }
                None => {}
            }
            item.store_files(&self.caller.tl).await?;
            // What was deleted keeps its place in the log, and with it the id.
            let keep_id = match item.id() {
                None => false,
                Some(own) => {
                    let entry = EntryId::from_external(self.session.id(), own);
                    let taken = |new: &NewEntry| new.id == entry;
                    if fresh.entries.iter().any(taken) {
                        let why = "two items of this request have that id";
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

    /// Finds an item where its id tells the entry.
    async fn find_by_entry_id(&self, item: &str) -> Result<Option<LocatedItem>, OpenAiError> {
        let mut ids = vec![EntryId::from_external(self.session.id(), item)];
        ids.extend(id::parse_item(item));
        match self.locate_entries(&ids).await?.as_slice() {
            [] => Ok(None),
            _ => self.find(item).await,
        }
    }
}

/// The message that an item is all of.
fn sole_message(found: &LocatedItem) -> Option<&Message> {
    found.entry.message().filter(|_| found.items.len() == 1)
}

/// Adds items to a conversation; they are durable when this answers.
pub(super) async fn add(
    State(app): State<App>,
    conversation: Conversation,
    Sent(body): Sent<AddItemsBody>,
) -> Result<Answer<ItemList>, OpenAiError> {
    let items = parse_items(&body.items, "items", MAX_ADDED_ITEMS)?;
    if items.is_empty() {
        return Err(OpenAiError::invalid_param(
            "items",
            "there is no item to add",
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
    // What was just added is in sight.
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
    Ok(Answer(ItemList::from_items(shown, false)))
}

/// Which items to list.
#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    order: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

/// One page of a conversation's items.
pub(super) async fn list(
    conversation: Conversation,
    Query(query): Query<ListQuery>,
) -> Result<Answer<ItemList>, OpenAiError> {
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
    Ok(Answer(ItemList::from_items(items, more)))
}

/// The id of an item in the path.
pub(super) struct ItemId(String);

impl FromRequestParts<App> for ItemId {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenAiError> {
        Ok(Self(path_param(parts, app, "item").await?))
    }
}

/// Looks at an item.
pub(super) async fn retrieve(
    conversation: Conversation,
    ItemId(item): ItemId,
) -> Result<Answer<Json>, OpenAiError> {
    let found = conversation.find(&item).await?;
    let found = found.ok_or_else(|| OpenAiError::item_not_found(&item))?;
    Ok(Answer(found.item().json.clone()))
}

/// Deletes an item for good: its entry is erased, here and in forks that share it.
pub(super) async fn delete(
    State(app): State<App>,
    conversation: Conversation,
    ItemId(item): ItemId,
) -> Result<Answer<Value>, OpenAiError> {
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
        let why = "this item tells what the session goes on from, and stays with it";
        return Err(OpenAiError::invalid_param("item_id", why));
    }
    if found.items.len() > 1 {
        if !conversation.is_last(seq).await? {
            let why = "this item is part of an answer that others follow; only the last answer \
                       can be taken apart";
            return Err(OpenAiError::invalid_param("item_id", why));
        }
        // What stays is said again before what goes is erased: nothing is lost between.
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
    conversation.view().await.map(Answer)
}

/// What stays of an entry without one of its items: an entry an item, under their ids.
fn remaining_entries(session: &Session, found: &LocatedItem) -> Vec<NewEntry> {
    let Some(message) = found.entry.message() else {
        return Vec::new();
    };
    let items = found.items.iter().enumerate();
    let others = items.filter(|(index, _)| *index != found.index);
    others
        .enumerate()
        .map(|(nth, (_, item))| {
            let said = Message {
                content: item.blocks.clone(),
                // What it cost is counted once.
                usage: message.usage.filter(|_| nth == 0),
                ..message.clone()
            };
            NewEntry {
                id: EntryId::from_external(session.id(), &item.id),
                external_id: Some(item.id.clone()),
                author: found.entry.author.clone(),
                ..session.new_entry(said)
            }
        })
        .collect()
}
