//! [`ChangeFeed`] of the in-memory store.

use async_trait::async_trait;
use throughline_model::{Owner, Seq, SessionId};

use super::MemoryStore;
use crate::{Change, ChangeFeed, ChangeKind, Position, StoreError};

/// A change without the entry itself, which is in the log.
#[derive(Clone, Debug)]
pub(super) struct StoredChange {
    pub(super) session: SessionId,
    pub(super) kind: StoredChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredChangeKind {
    Created,
    Appended(Seq),
    Erased(Seq),
    Trashed,
    Restored,
    Removed,
}

#[async_trait]
impl ChangeFeed for MemoryStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        let happened = self.all_changes();
        Ok(happened.last().map_or(Position(0), |(at, ..)| *at))
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        Ok(self.resolve_changes(self.all_changes(), after, limit))
    }

    async fn owner_changes(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let mut happened = self.all_changes();
        happened.retain(|(_, of, _)| of == owner);
        Ok(self.resolve_changes(happened, after, limit))
    }
}

impl MemoryStore {
    /// The changes after a position, with their entries.
    fn resolve_changes(
        &self,
        happened: Vec<(Position, Owner, StoredChange)>,
        after: Position,
        limit: usize,
    ) -> Vec<Change> {
        let spaces = self.lock();
        let later = happened.into_iter().filter(|(at, ..)| *at > after);
        let changes = later.filter_map(|(position, owner, happened)| {
            let what = match happened.kind {
                StoredChangeKind::Created => ChangeKind::Created,
                StoredChangeKind::Erased(seq) => ChangeKind::Erased(seq),
                StoredChangeKind::Trashed => ChangeKind::Trashed,
                StoredChangeKind::Restored => ChangeKind::Restored,
                StoredChangeKind::Removed => ChangeKind::Removed,
                StoredChangeKind::Appended(seq) => {
                    // Changes of a removed session are not returned.
                    let session = spaces.get(&owner)?.sessions.get(&happened.session)?;
                    let index = usize::try_from(seq.0.checked_sub(1)?).ok()?;
                    ChangeKind::Appended((**session.log.get(index)?).clone())
                }
            };
            Some(Change {
                position,
                owner,
                session: happened.session,
                kind: what,
            })
        });
        changes.take(limit).collect()
    }

    /// All changes, in order.
    fn all_changes(&self) -> Vec<(Position, Owner, StoredChange)> {
        let spaces = self.lock();
        let all = spaces.iter().flat_map(|(owner, space)| {
            let changes = space.changes.iter();
            changes.map(|(at, happened)| (*at, owner.clone(), happened.clone()))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(at, ..)| *at);
        all
    }
}
