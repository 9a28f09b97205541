//! Whether the index was made from what the store holds.
//!
//! A store can move back in time: a backup is restored, a file is copied over, a write-ahead
//! log is lost. The index then tells of entries that are gone, and takes new ones at the same
//! positions for known. Its anchors are compared with the store before it is trusted, and
//! hits with the entries they were made from before they are shown.

use std::sync::{Arc, PoisonError};

use throughline_recall::{Hit, IndexState};
use throughline_store::{Position, Read, StoreError};

use super::passages::{Place, passage};
use super::{IndexRebuild, Patience, ask_index};
use crate::{Error, Throughline};

impl Throughline {
    /// How far the index goes, and what it was made from.
    pub(super) async fn index_state(&self) -> Result<IndexState, Error> {
        let shelf = Arc::clone(&self.shelf);
        ask_index(move || Ok(shelf.index()?.index().state()?)).await
    }

    /// Whether the store still has the changes the index was made from.
    ///
    /// All anchors are compared once a process, and then the newest: a store that moves back
    /// while it is open has no change there, or another. What is gone says nothing.
    pub(super) async fn index_matches_store(&self) -> Result<bool, Error> {
        let state = self.index_state().await?;
        // In this order: another process may append and feed between the two.
        if Position(state.upto) > self.store.last_position().await? {
            return Ok(false);
        }
        let is_first = !self.shelf.matched();
        let compared = if is_first { state.anchors.len() } else { 1 };
        for anchor in state.anchors.iter().rev().take(compared) {
            let found = self.store.change_at(Position(anchor.position)).await?;
            if found.is_some_and(|change| change.fingerprint() != anchor.digest) {
                return Ok(false);
            }
        }
        self.shelf.set_matched(true);
        Ok(true)
    }

    /// Takes out hits whose entries are gone or say something else; tells whether there
    /// were any. An index in the store's own database cannot differ from it, and one of a
    /// store elsewhere is compared by its anchors only.
    pub(super) async fn drop_outdated(&self, hits: &mut Vec<Hit>) -> Result<bool, Error> {
        if !self.shelf.is_beside() {
            return Ok(false);
        }
        let all = hits.len();
        for hit in std::mem::take(hits) {
            if self.is_current(&hit).await? {
                hits.push(hit);
            }
        }
        Ok(hits.len() < all)
    }

    async fn is_current(&self, hit: &Hit) -> Result<bool, Error> {
        let session = self.owner.session(&hit.session);
        let read = Read::between(hit.seq, hit.seq, 1);
        let stored = match self.store.read_stored(&session, read).await {
            Ok(mut page) => page.pop(),
            Err(StoreError::NoSuchSession(_)) => None,
            // A fork shows what it shares with a session in the trash; other errors are
            // told when the entry is read.
            Err(_) => return Ok(true),
        };
        let Some(entry) = stored.and_then(|stored| stored.decode().ok()) else {
            return Ok(false);
        };
        let place = Place {
            position: 0,
            owner: &self.owner,
            session: &hit.session,
            origin: None,
        };
        Ok(passage(&entry, place).is_some_and(|passage| passage.text == hit.text))
    }

    /// Has the index rebuilt because it was made from another history of the store.
    pub(super) async fn rebuild_mismatched(&self, patience: Patience) -> Result<(), Error> {
        self.discard_index(IndexRebuild::Mismatch).await?;
        self.catch_up(patience, &mut |_, _| {}).await?;
        Ok(())
    }
}

impl super::Shelf {
    fn matched(&self) -> bool {
        *self.matched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_matched(&self, matched: bool) {
        *self.matched.lock().unwrap_or_else(PoisonError::into_inner) = matched;
    }

    fn is_beside(&self) -> bool {
        self.beside
    }
}
