//! Logs in memory.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::{Birth, EntryId, Owner, Record, Seq, SessionRef, StoredEntry};

use super::feed::Told;
use super::{MemoryStore, Session, encoding, fold, usize_of};
use crate::{
    Append, Appended, Created, LogStore, Read, StoreError, decode, refuse_large_entry, verify,
};

#[async_trait]
impl LogStore for MemoryStore {
    async fn create(&self, owner: &Owner, birth: Birth) -> Result<Created, StoreError> {
        self.with(owner, |space| space.create(birth))
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<Appended, StoreError> {
        self.with(&to.owner, |space| space.append(&to.id, append))
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        self.with(&of.owner, |space| Ok(space.live(&of.id)?.record.clone()))
    }

    async fn birth(&self, of: &SessionRef) -> Result<Birth, StoreError> {
        self.with(&of.owner, |space| Ok(space.live(&of.id)?.birth.clone()))
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        self.with(&of.owner, |space| {
            Ok(stretch(&space.live(&of.id)?.log, read))
        })
    }

    async fn copy_of(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<(Birth, Vec<StoredEntry>), StoreError> {
        self.with(&of.owner, |space| match space.sessions.get(&of.id) {
            None => Err(StoreError::NoSuchSession(of.id.clone())),
            Some(session) => Ok((session.birth.clone(), stretch(&session.log, read))),
        })
    }

    async fn fork(&self, of: &SessionRef, at: Seq, birth: Birth) -> Result<Record, StoreError> {
        self.with(&of.owner, |space| space.fork(&of.id, at, birth))
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        self.with(&of.owner, |space| Ok(space.live(&of.id)?.locate(ids)))
    }

    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.with(&of.owner, |space| {
            let session = space.live(&of.id)?;
            let head = session.record.card.head;
            let mut tombstones = Vec::new();
            for seq in entries {
                let Some(stored) = usize_of(*seq)
                    .checked_sub(1)
                    .and_then(|i| session.log.get(i))
                else {
                    return Err(StoreError::NoSuchEntry {
                        id: of.id.clone(),
                        seq: *seq,
                        head,
                    });
                };
                let erased = stored.erased(reason).map_err(|e| encoding(e.into()))?;
                tombstones.push((Arc::clone(stored), Arc::new(erased)));
            }
            for (stored, _) in &tombstones {
                space
                    .tokens
                    .retain(|(_, digest), _| *digest != stored.digest);
            }
            // Forks share the very entry, so they are found by it.
            for session in space.sessions.values_mut() {
                for (stored, erased) in &tombstones {
                    if let Some(slot) = session
                        .log
                        .get_mut(usize_of(stored.seq) - 1)
                        .filter(|slot| Arc::ptr_eq(slot, stored))
                    {
                        *slot = Arc::clone(erased);
                    }
                }
                session.record = fold(&session.birth, &session.log)?;
            }
            for seq in entries {
                let home = space.home(&of.id, *seq);
                space.tell(&home, Told::Erased(*seq));
            }
            Ok(())
        })
    }

    async fn adopt(
        &self,
        owner: &Owner,
        birth: Birth,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.with(owner, |space| {
            let id = birth.id.clone();
            let mut next = if space.sessions.contains_key(&id) {
                space.live(&id)?.clone()
            } else {
                if let Some(key) = &birth.key {
                    space.refuse_taken_key(key)?;
                }
                Session {
                    record: Record::new(&birth),
                    birth,
                    log: Vec::new(),
                    trashed: None,
                }
            };
            let mut new = 0;
            let first = next.record.card.head;
            for stored in entries {
                let card = &next.record.card;
                if stored.seq <= card.head {
                    let index = usize_of(stored.seq).saturating_sub(1);
                    if next
                        .log
                        .get(index)
                        .is_none_or(|kept| kept.digest != stored.digest)
                    {
                        return Err(StoreError::Moved {
                            id,
                            expected: Seq(stored.seq.0.saturating_sub(1)),
                            found: card.head,
                        });
                    }
                    continue;
                }
                if stored.seq != card.head.next() {
                    return Err(StoreError::Moved {
                        id,
                        expected: Seq(stored.seq.0 - 1),
                        found: card.head,
                    });
                }
                refuse_large_entry(&stored.payload)?;
                verify(&id, &stored, &card.digest)?;
                next.record.apply(&decode(&id, &stored)?);
                next.log.push(Arc::new(stored));
                new += 1;
            }
            if !space.sessions.contains_key(&id) {
                space.tell(&id, Told::Created);
            }
            for seq in first.0 + 1..=next.record.card.head.0 {
                space.tell(&id, Told::Appended(Seq(seq)));
            }
            space.sessions.insert(id, next);
            Ok(new)
        })
    }
}

/// The part of a log that is meant.
fn stretch(log: &[Arc<StoredEntry>], read: Read) -> Vec<StoredEntry> {
    let end = read.to.map_or(log.len(), |to| usize_of(to).min(log.len()));
    let start = usize_of(read.from).max(1) - 1;
    let stretch = log.get(start..end).unwrap_or(&[]);
    let stretch = if read.from_end {
        &stretch[stretch.len().saturating_sub(read.limit)..]
    } else {
        &stretch[..stretch.len().min(read.limit)]
    };
    stretch.iter().map(|entry| (**entry).clone()).collect()
}
