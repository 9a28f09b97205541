//! The items of a conversation: added, listed, looked at and deleted.

use axum::Json as Answer;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::{
    Conflict, EntryId, Expect, How, Json, Lineage, Message, NewEntry, Read, Seq, Session,
};

use super::item::{Given, Item, given};
use super::log::{Conversation, Found, Order, limit};
use super::{Refusal, id};
use crate::App;
use crate::extract::{Json as Sent, Query, param};

/// How many items may be added at once.
pub(super) const MOST_ITEMS: usize = 20;

/// Understands items; `param` is where in the request they stand.
pub(super) fn understood(items: &[Json], param: &str, most: usize) -> Result<Vec<Given>, Refusal> {
    if items.len() > most {
        let why = format!(
            "at most {most} items are taken at once; there are {}",
            items.len()
        );
        return Err(Refusal::param(param, why));
    }
    let items = items.iter().enumerate();
    items
        .map(|(at, item)| given(item, &format!("{param}[{at}]")))
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
    fn of(items: Vec<Item>, has_more: bool) -> Self {
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
pub(super) struct AddBody {
    items: Vec<Json>,
}

/// Items that are to be said in a conversation: those that are not there yet.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    /// The new ones, as entries.
    pub(super) entries: Vec<NewEntry>,
    /// Where those are that are there already, with the places of the new ones between.
    places: Vec<Option<Seq>>,
}

impl Conversation {
    /// Tells new items from those that are there under the same id, which are not said
    /// twice; another item under a known id is refused.
    pub(super) async fn fresh(&self, items: Vec<Given>, param: &str) -> Result<Fresh, Refusal> {
        let mut fresh = Fresh::default();
        for (at, item) in items.into_iter().enumerate() {
            let mut known = None;
            if let Some(own) = item.id() {
                known = self.find_quickly(own).await?;
            }
            match known {
                Some(found) if said_by(&found) == Some(item.message()) => {
                    fresh.places.push(Some(found.entry.seq));
                    continue;
                }
                Some(_) => {
                    let why = "another item of this conversation has that id";
                    return Err(Refusal::param(format!("{param}[{at}].id"), why));
                }
                None => {}
            }
            item.keep_files(&self.caller.tl).await?;
            // What was deleted keeps its place in the log, and with it the id.
            let keep_id = match item.id() {
                None => false,
                Some(own) => {
                    let entry = EntryId::from_external(self.session.id(), own);
                    let taken = |new: &NewEntry| new.id == entry;
                    if fresh.entries.iter().any(taken) {
                        let why = "two items of this request have that id";
                        return Err(Refusal::param(format!("{param}[{at}].id"), why));
                    }
                    self.located(&[entry]).await?.is_empty()
                }
            };
            fresh.entries.push(item.entry(&self.session, keep_id));
            fresh.places.push(None);
        }
        Ok(fresh)
    }

    /// Finds an item where its id tells the entry.
    async fn find_quickly(&self, item: &str) -> Result<Option<Found>, Refusal> {
        let mut ids = vec![EntryId::from_external(self.session.id(), item)];
        ids.extend(id::entry(item));
        match self.located(&ids).await?.as_slice() {
            [] => Ok(None),
            _ => self.find(item).await,
        }
    }
}

/// The message that an item is all of.
fn said_by(found: &Found) -> Option<&Message> {
    found.entry.message().filter(|_| found.items.len() == 1)
}

/// Adds items to a conversation; they are durable when this answers.
pub(super) async fn add(
    State(app): State<App>,
    conversation: Conversation,
    Sent(body): Sent<AddBody>,
) -> Result<Answer<ItemList>, Refusal> {
    let items = understood(&body.items, "items", MOST_ITEMS)?;
    if items.is_empty() {
        return Err(Refusal::param("items", "there is no item to add"));
    }
    conversation.refuse_locked(&app)?;
    let fresh = conversation.fresh(items, "items").await?;
    let mut added = Vec::new().into_iter();
    if !fresh.entries.is_empty() {
        let session = &conversation.session;
        let appended = session
            .append_all(fresh.entries, Expect::Any, Conflict::Reject)
            .await?;
        debug_assert_ne!(appended.how, How::Forked);
        added = appended.entries.into_iter();
    }
    // What was just added is in sight.
    let conversation = Conversation {
        record: conversation.session.record().await?,
        ..conversation
    };
    let mut shown = Vec::new();
    for place in fresh.places {
        let entry = match place {
            None => added.next(),
            Some(seq) => {
                let read = Read::between(seq, seq, 1);
                conversation.session.read(read).await?.pop()
            }
        };
        if let Some(entry) = entry {
            shown.extend(conversation.items_of(&entry).await?);
        }
    }
    Ok(Answer(ItemList::of(shown, false)))
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
) -> Result<Answer<ItemList>, Refusal> {
    let order = Order::asked(query.order.as_deref())?;
    let limit = limit(query.limit.as_deref())?;
    let after = match &query.after {
        None => None,
        Some(after) => {
            let found = conversation.find(after).await?;
            Some(found.ok_or_else(|| Refusal::no_item(after))?)
        }
    };
    let (items, more) = conversation.page(order, after.as_ref(), limit).await?;
    Ok(Answer(ItemList::of(items, more)))
}

/// The id of an item in the path.
pub(super) struct ItemId(String);

impl FromRequestParts<App> for ItemId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        Ok(Self(param(parts, app, "item").await?))
    }
}

/// Looks at an item.
pub(super) async fn retrieve(
    conversation: Conversation,
    ItemId(item): ItemId,
) -> Result<Answer<Json>, Refusal> {
    let found = conversation.find(&item).await?;
    let found = found.ok_or_else(|| Refusal::no_item(&item))?;
    Ok(Answer(found.item().json.clone()))
}

/// Deletes an item for good: its entry is erased, here and in forks that share it.
pub(super) async fn delete(
    State(app): State<App>,
    conversation: Conversation,
    ItemId(item): ItemId,
) -> Result<Answer<Value>, Refusal> {
    conversation.refuse_locked(&app)?;
    let found = conversation.find(&item).await?;
    let found = found.ok_or_else(|| Refusal::no_item(&item))?;
    let (session, seq) = (&conversation.session, found.entry.seq);
    if let Lineage::Forked { session, at } = &conversation.record.card.lineage
        && seq <= *at
    {
        let origin = id::conversation(session);
        let why = format!(
            "this item is shared with {origin}, which this conversation was forked from; delete \
             it there"
        );
        return Err(Refusal::param("item_id", why));
    }
    if found.entry.message().is_none() {
        let why = "this item tells what the session goes on from, and stays with it";
        return Err(Refusal::param("item_id", why));
    }
    if found.items.len() > 1 {
        if !conversation.is_last(seq).await? {
            let why = "this item is part of an answer that others follow; only the last answer \
                       can be taken apart";
            return Err(Refusal::param("item_id", why));
        }
        // What stays is said again before what goes is erased: nothing is lost between.
        let stays = remainder(session, &found);
        session
            .append_all(
                stays,
                Expect::At(conversation.record.card.head),
                Conflict::Reject,
            )
            .await?;
    }
    session.erase(&[seq], Some("deleted as an item")).await?;
    app.hub.wake();
    conversation.view().await.map(Answer)
}

/// What stays of an entry without one of its items: an entry an item, under their ids.
fn remainder(session: &Session, found: &Found) -> Vec<NewEntry> {
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
                ..session.entry(said)
            }
        })
        .collect()
}
