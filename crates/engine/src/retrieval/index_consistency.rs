//! Whether the index was made from what the store holds.
//!
//! A store can move back in time: a backup is restored, a file is copied over, a write-ahead
//! log is lost. The index then tells of entries that are gone, and takes new ones at the same
//! positions for known. Its anchors are compared with the store before it is trusted, and
//! hits with the entries they were made from before they are shown.

use std::sync::{Arc, PoisonError};

use futures_util::future::try_join_all;
use throughline_recall::{Hit, IndexState};
use throughline_store::{Position, ReadRange, StoreError};

use super::passages::{EntryLocation, to_passage};
use super::{IndexRebuild, IndexWait, run_index_task};
use crate::{Error, Throughline};

impl Throughline {
    /// How far the index goes, and what it was made from.
    pub(super) async fn index_state(&self) -> Result<IndexState, Error> {
        let shelf = Arc::clone(&self.index);
        run_index_task(move || Ok(shelf.open_index()?.as_index().state()?)).await
    }

    /// Whether the store still has the changes the index was made from.
    ///
    /// All anchors are compared once a process, and then the newest: a store that moves back
    /// while it is open has no change there, or another. What is gone says nothing.
    pub(super) async fn is_index_consistent(&self) -> Result<bool, Error> {
        let state = self.index_state().await?;
        // In this order: another process may append and feed between the two.
        let is_first = !self.index.is_verified();
        let compared = if is_first { state.anchors.len() } else { 1 };
        let matches = self.has_anchors(&state, compared).await?;
        if matches {
            self.index.set_verified(true);
        }
        Ok(matches)
    }

    /// Whether the store goes as far as an index, and has the newest of its anchors.
    pub(crate) async fn has_anchors(
        &self,
        state: &IndexState,
        compared: usize,
    ) -> Result<bool, Error> {
        if Position(state.upto) > self.store.last_position().await? {
            return Ok(false);
        }
        for anchor in state.anchors.iter().rev().take(compared) {
            let found = self.store.change_at(Position(anchor.position)).await?;
            if found.is_some_and(|change| change.fingerprint() != anchor.digest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes out hits whose entries are gone or say something else; tells whether there
    /// were any. The index of a store on a server is compared by its anchors only: every
    /// hit would be a request.
    pub(super) async fn drop_stale_hits(&self, hits: &mut Vec<Hit>) -> Result<bool, Error> {
        if !self.index.is_local() && self.index.postgres.is_none() {
            return Ok(false);
        }
        let current = try_join_all(hits.iter().map(|hit| self.is_current(hit))).await?;
        let mut current = current.into_iter();
        let all = hits.len();
        hits.retain(|_| current.next().unwrap_or(false));
        Ok(hits.len() < all)
    }

    /// The same where reading an entry costs next to nothing. In a database every one is a
    /// trip, and a request only searches what the index and the store agree on.
    pub(super) async fn drop_stale_hits_if_local(
        &self,
        hits: &mut Vec<Hit>,
    ) -> Result<bool, Error> {
        if self.index.is_local() {
            return self.drop_stale_hits(hits).await;
        }
        Ok(false)
    }

    async fn is_current(&self, hit: &Hit) -> Result<bool, Error> {
        let session = self.owner.session(&hit.session);
        let read = ReadRange::between(hit.seq, hit.seq, 1);
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
        let place = EntryLocation {
            position: 0,
            owner: &self.owner,
            session: &hit.session,
            origin: None,
        };
        Ok(to_passage(&entry, place).is_some_and(|passage| passage.text == hit.text))
    }

    /// Has the index rebuilt because it was made from another history of the store.
    pub(super) async fn rebuild_mismatched_index(&self, patience: IndexWait) -> Result<(), Error> {
        self.discard_index(IndexRebuild::Mismatch).await?;
        self.catch_up(patience, &mut |_, _| {}).await?;
        Ok(())
    }
}

impl super::IndexHandle {
    fn is_verified(&self) -> bool {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_verified(&self, matched: bool) {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner) = matched;
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}
