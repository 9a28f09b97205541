//! Finds and pages the items of a conversation.
//!
//! Only what the model may see is an item of the conversation. The cost of reading a page depends
//! on the page, not on the length of the session.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use throughline::{Entry, EntryId, Lineage, ReadRange, Record, Seq, Session, StoreError};

use super::item::{Item, items_of_entry};
use super::{OpenAiError, id};
use crate::extract::path_param;
use crate::{App, Caller};

/// Entries read at a time.
const PAGE_SIZE: usize = 128;
/// How many entries are searched for an item whose id does not contain its entry.
const MAX_SCANNED_ENTRIES: u64 = 4_096;

/// The conversation in the path, which exists and belongs to the caller.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) caller: Caller,
    pub(super) session: Session,
    pub(super) record: Record,
}

impl Conversation {
    /// Opens the conversation with this id.
    pub(super) async fn open(caller: Caller, conversation: &str) -> Result<Self, OpenAiError> {
        for id in id::candidate_sessions(conversation) {
            let session = caller.tl.session_unchecked(&id);
            match session.record().await {
                // Internal sessions are not conversations.
                Ok(record) if record.info.is_internal() => {}
                Ok(record) => {
                    return Ok(Self {
                        caller,
                        session,
                        record,
                    });
                }
                Err(throughline::Error::Store(
                    StoreError::NoSuchSession(_) | StoreError::InTrash(_),
                )) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(OpenAiError::conversation_not_found(conversation))
    }

    /// Refuses while a turn is running: its answer would come after what is added now.
    pub(super) fn check_unlocked(&self, app: &App) -> Result<(), OpenAiError> {
        let turn = app.turns.find(self.session.reference(), None);
        match turn.filter(|turn| turn.outcome().is_none()) {
            None => Ok(()),
            Some(_) => Err(OpenAiError::conversation_locked()),
        }
    }

    /// Returns the items of an entry; none if it is not visible.
    pub(super) async fn items_of(&self, entry: &Entry) -> Result<Vec<Item>, OpenAiError> {
        if !self.record.state.is_visible(entry.seq) {
            return Ok(Vec::new());
        }
        items_of_entry(&self.caller.tl, self.session.id(), entry).await
    }

    /// Finds the entry of an item, with all items of that entry and the item's index.
    pub(super) async fn find(&self, item: &str) -> Result<Option<LocatedItem>, OpenAiError> {
        let mut ids = vec![EntryId::from_external(self.session.id(), item)];
        ids.extend(id::parse_item(item));
        for seq in self.locate_entries(&ids).await? {
            let entry = self
                .session
                .read(ReadRange::between(seq, seq, 1))
                .await?
                .pop();
            if let Some(entry) = entry
                && let Some(found) = self.match_item(entry, item).await?
            {
                return Ok(Some(found));
            }
        }
        // Ids assigned by providers, within larger answers.
        let mut to = self.record.info.head;
        let last = Seq(to.0.saturating_sub(MAX_SCANNED_ENTRIES));
        while to > last {
            let page = self
                .session
                .read(ReadRange::up_to(Some(to), PAGE_SIZE))
                .await?;
            let Some(first) = page.first().map(|entry| entry.seq) else {
                break;
            };
            for entry in page.into_iter().rev() {
                if let Some(found) = self.match_item(entry, item).await? {
                    return Ok(Some(found));
                }
            }
            to = Seq(first.0 - 1);
        }
        Ok(None)
    }

    async fn match_item(
        &self,
        entry: Entry,
        item: &str,
    ) -> Result<Option<LocatedItem>, OpenAiError> {
        let items = self.items_of(&entry).await?;
        let index = items.iter().position(|shown| shown.id == item);
        Ok(index.map(|index| LocatedItem {
            entry,
            items,
            index,
        }))
    }

    /// Finds the positions of these entries, in the session or in those it was forked from.
    pub(super) async fn locate_entries(&self, ids: &[EntryId]) -> Result<Vec<Seq>, OpenAiError> {
        let mut seqs = Vec::new();
        let mut session = self.session.clone();
        let mut lineage = self.record.info.lineage.clone();
        let mut upto = self.record.info.head;
        loop {
            let store = self.caller.tl.store();
            let found = match store.locate(session.reference(), ids).await {
                Ok(found) => found,
                // The origin was deleted; entries shared with it are found in this session.
                Err(StoreError::NoSuchSession(_) | StoreError::InTrash(_)) => return Ok(seqs),
                Err(error) => return Err(error.into()),
            };
            seqs.extend(found.into_iter().flatten().filter(|seq| *seq <= upto));
            let Lineage::Forked {
                session: origin,
                at,
            } = lineage
            else {
                return Ok(seqs);
            };
            upto = upto.min(at);
            session = session.other_session(&origin);
            lineage = match session.header().await {
                Ok(header) => header.lineage,
                Err(_) => return Ok(seqs),
            };
        }
    }

    /// Reads one page of items after a given item, in either order; returns whether there are more.
    pub(super) async fn read_page(
        &self,
        order: Order,
        after: Option<&LocatedItem>,
        limit: usize,
    ) -> Result<(Vec<Item>, bool), OpenAiError> {
        let mut items = Vec::new();
        let head = self.record.info.head;
        let mut next = match (after, order) {
            (Some(found), _) => found.entry.seq,
            (None, Order::Asc) => Seq(1),
            (None, Order::Desc) => head,
        };
        while next > Seq::ZERO && next <= head && items.len() <= limit {
            let read = match order {
                Order::Asc => ReadRange::starting_at(next, PAGE_SIZE),
                Order::Desc => ReadRange::up_to(Some(next), PAGE_SIZE),
            };
            let mut page = self.session.read(read).await?;
            if order == Order::Desc {
                page.reverse();
            }
            let Some(last) = page.last().map(|entry| entry.seq) else {
                break;
            };
            for entry in &page {
                let mut of_entry = self.items_of(entry).await?;
                if order == Order::Desc {
                    of_entry.reverse();
                }
                let seen = after.filter(|after| after.entry.seq == entry.seq);
                let seen = seen.map_or(0, |after| match order {
                    Order::Asc => after.index + 1,
                    Order::Desc => after.items.len() - after.index,
                });
                items.extend(of_entry.into_iter().skip(seen));
                if items.len() > limit {
                    break;
                }
            }
            next = match order {
                Order::Asc => last.next(),
                Order::Desc => Seq(last.0 - 1),
            };
        }
        let more = items.len() > limit;
        items.truncate(limit);
        Ok((items, more))
    }

    /// Returns whether no message follows an entry.
    pub(super) async fn is_last(&self, seq: Seq) -> Result<bool, OpenAiError> {
        let mut next = seq.next();
        loop {
            let page = self.session.entries(next, PAGE_SIZE).await?;
            let Some(last) = page.last() else {
                return Ok(true);
            };
            next = last.seq.next();
            let shows = |entry: &Entry| self.record.state.is_visible(entry.seq);
            if page.iter().any(|e| e.message().is_some() && shows(e)) {
                return Ok(false);
            }
        }
    }
}

impl FromRequestParts<App> for Conversation {
    type Rejection = OpenAiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, OpenAiError> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let id = path_param(parts, app, "id").await?;
        Self::open(caller, &id).await
    }
}

/// An item and its entry.
#[derive(Debug)]
pub(super) struct LocatedItem {
    pub(super) entry: Entry,
    /// All items of the entry.
    pub(super) items: Vec<Item>,
    /// Index of the item among them.
    pub(super) index: usize,
}

impl LocatedItem {
    pub(super) fn item(&self) -> &Item {
        &self.items[self.index]
    }
}

/// Sort order of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    #[default]
    Desc,
}

impl Order {
    /// Parses the `order` parameter.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, OpenAiError> {
        match text {
            None => Ok(Self::default()),
            Some("asc") => Ok(Self::Asc),
            Some("desc") => Ok(Self::Desc),
            Some(_) => Err(OpenAiError::invalid_param(
                "order",
                "order must be asc or desc",
            )),
        }
    }
}

/// Parses the `limit` parameter; 20 by default.
pub(super) fn parse_limit(asked: Option<&str>) -> Result<usize, OpenAiError> {
    const USUAL: usize = 20;
    const MOST: usize = 100;
    match asked.map(str::parse) {
        None => Ok(USUAL),
        Some(Ok(limit)) if (1..=MOST).contains(&limit) => Ok(limit),
        Some(_) => Err(OpenAiError::invalid_param(
            "limit",
            "limit must be a number from 1 to 100",
        )),
    }
}
