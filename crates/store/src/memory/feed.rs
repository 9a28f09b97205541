//! What happened, in memory.

use async_trait::async_trait;
use throughline_model::{Owner, Seq, SessionId};

use super::MemoryStore;
use crate::{Change, Feed, Position, StoreError, What};

/// Something that happened, without what it says: that is in the log.
#[derive(Clone, Debug)]
pub(super) struct Happened {
    pub(super) session: SessionId,
    pub(super) what: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Created,
    Appended(Seq),
    Erased(Seq),
    Trashed,
    Restored,
    Removed,
}

#[async_trait]
impl Feed for MemoryStore {
    async fn last_position(&self) -> Result<Position, StoreError> {
        let happened = self.happened();
        Ok(happened.last().map_or(Position(0), |(at, ..)| *at))
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>, StoreError> {
        Ok(self.told(self.happened(), after, limit))
    }

    async fn changes_of(
        &self,
        owner: &Owner,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let mut happened = self.happened();
        happened.retain(|(_, of, _)| of == owner);
        Ok(self.told(happened, after, limit))
    }
}

impl MemoryStore {
    /// What happened after a position, with what it says.
    fn told(
        &self,
        happened: Vec<(Position, Owner, Happened)>,
        after: Position,
        limit: usize,
    ) -> Vec<Change> {
        let spaces = self.lock();
        let later = happened.into_iter().filter(|(at, ..)| *at > after);
        let changes = later.filter_map(|(position, owner, happened)| {
            let what = match happened.what {
                Told::Created => What::Created,
                Told::Erased(seq) => What::Erased(seq),
                Told::Trashed => What::Trashed,
                Told::Restored => What::Restored,
                Told::Removed => What::Removed,
                Told::Appended(seq) => {
                    // What is gone with its session is not told again.
                    let session = spaces.get(&owner)?.sessions.get(&happened.session)?;
                    let index = usize::try_from(seq.0.checked_sub(1)?).ok()?;
                    What::Appended((**session.log.get(index)?).clone())
                }
            };
            Some(Change {
                position,
                owner,
                session: happened.session,
                what,
            })
        });
        changes.take(limit).collect()
    }

    /// Everything that happened, in order.
    fn happened(&self) -> Vec<(Position, Owner, Happened)> {
        let spaces = self.lock();
        let all = spaces.iter().flat_map(|(owner, space)| {
            let told = space.happened.iter();
            told.map(|(at, happened)| (*at, owner.clone(), happened.clone()))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(at, ..)| *at);
        all
    }
}
