//! Checks that the index was built from what the store contains.
//!
//! A store can move back in time: a backup is restored, a file is copied over, a
//! write-ahead log is lost. The index would then return entries that no longer exist,
//! and treat new entries at the same positions as indexed. Therefore its anchors are
//! compared with the store before it is used, and hits with their entries before they
//! are returned.

use std::sync::{Arc, PoisonError};

use futures_util::future::try_join_all;
use throughline_recall::{Hit, IndexState};
use throughline_store::{Position, ReadRange, StoreError};

use super::passages::{EntryLocation, to_passage};
use super::{IndexRebuild, IndexWait, run_index_task};
use crate::{Error, Throughline};

impl Throughline {
    /// Returns how far the index goes and what it was built from.
    pub(super) async fn index_state(&self) -> Result<IndexState, Error> {
        let index = Arc::clone(&self.index);
        run_index_task(move || Ok(index.open_index()?.as_index().state()?)).await
    }

    /// Returns whether the store still has the changes that the index was built from.
    ///
    /// All anchors are compared once per process, later only the newest: if a store
    /// moves back while it is open, the newest change is missing or different. A change
    /// that was removed from the store is not a mismatch.
    pub(super) async fn is_index_consistent(&self) -> Result<bool, Error> {
        let state = self.index_state().await?;
        // The index before the store: another process may append and index in between.
        let is_first = !self.index.is_verified();
        let compared = if is_first { state.anchors.len() } else { 1 };
        let matches = self.has_anchors(&state, compared).await?;
        if matches {
            self.index.set_verified(true);
        }
        Ok(matches)
    }

    /// Returns whether the store goes as far as the index and has the newest `compared`
    /// anchors.
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

    /// Removes hits whose entries no longer exist or differ; returns whether there were
    /// any. With a store on a server only the anchors are compared, because every hit
    /// would cost a request.
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

    /// Removes stale hits if reading entries is cheap. In a database every read is a
    /// round trip, and requests search only what index and store agree on.
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
            // A fork may share entries with a session in the trash; other errors are
            // reported when the entry is read.
            Err(_) => return Ok(true),
        };
        let Some(entry) = stored.and_then(|stored| stored.decode().ok()) else {
            return Ok(false);
        };
        let location = EntryLocation {
            position: 0,
            owner: &self.owner,
            session: &hit.session,
            origin: None,
        };
        Ok(to_passage(&entry, location).is_some_and(|passage| passage.text == hit.text))
    }

    /// Rebuilds an index that was built from another history of the store.
    pub(super) async fn rebuild_mismatched_index(&self, wait: IndexWait) -> Result<(), Error> {
        self.discard_index(IndexRebuild::Mismatch).await?;
        self.catch_up(wait, &mut |_, _| {}).await?;
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
