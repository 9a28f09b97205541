//! [`LogStore`] of the in-memory store.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::{EntryId, Owner, Record, Seq, SessionHeader, SessionRef, StoredEntry};

use super::change_feed::StoredChangeKind;
use super::{MemoryStore, Session, encoding_error, fold_log, seq_to_usize};
use crate::{
    Append, AppendOutcome, CreateOutcome, LogStore, ReadRange, StoreError, decode_entry,
    refuse_large_entry, verify_entry,
};

#[async_trait]
impl LogStore for MemoryStore {
    async fn create(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        self.with_owner(owner, |space| space.create(header))
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError> {
        self.with_owner(&to.owner, |space| space.append(&to.id, append))
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        self.with_owner(&of.owner, |space| {
            Ok(space.live_session(&of.id)?.record.clone())
        })
    }

    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError> {
        self.with_owner(&of.owner, |space| {
            Ok(space.live_session(&of.id)?.header.clone())
        })
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        self.with_owner(&of.owner, |space| {
            Ok(read_range(&space.live_session(&of.id)?.log, read))
        })
    }

    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError> {
        self.with_owner(&of.owner, |space| match space.sessions.get(&of.id) {
            None => Err(StoreError::NoSuchSession(of.id.clone())),
            Some(session) => Ok((session.header.clone(), read_range(&session.log, read))),
        })
    }

    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        header: SessionHeader,
    ) -> Result<Record, StoreError> {
        self.with_owner(&of.owner, |space| space.fork(&of.id, at, header))
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        self.with_owner(&of.owner, |space| {
            Ok(space.live_session(&of.id)?.locate(ids))
        })
    }

    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.with_owner(&of.owner, |space| {
            let session = space.live_session(&of.id)?;
            let head = session.record.info.head;
            let mut tombstones = Vec::new();
            for seq in entries {
                let Some(stored) = seq_to_usize(*seq)
                    .checked_sub(1)
                    .and_then(|i| session.log.get(i))
                else {
                    return Err(StoreError::NoSuchEntry {
                        id: of.id.clone(),
                        seq: *seq,
                        head,
                    });
                };
                let erased = stored
                    .to_tombstone(reason)
                    .map_err(|e| encoding_error(e.into()))?;
                tombstones.push((Arc::clone(stored), Arc::new(erased)));
            }
            for (stored, _) in &tombstones {
                space
                    .token_counts
                    .retain(|(_, digest), _| *digest != stored.digest);
            }
            // Forks share the same `Arc`, so they are found by pointer.
            for session in space.sessions.values_mut() {
                for (stored, erased) in &tombstones {
                    if let Some(slot) = session
                        .log
                        .get_mut(seq_to_usize(stored.seq) - 1)
                        .filter(|slot| Arc::ptr_eq(slot, stored))
                    {
                        *slot = Arc::clone(erased);
                    }
                }
                session.record = fold_log(&session.header, &session.log)?;
            }
            for seq in entries {
                let home = space.find_appended_session(&of.id, *seq);
                space.record_change(&home, StoredChangeKind::Erased(*seq));
            }
            Ok(())
        })
    }

    async fn import_log(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.with_owner(owner, |space| {
            let id = header.id.clone();
            let mut next = if space.sessions.contains_key(&id) {
                space.live_session(&id)?.clone()
            } else {
                if let Some(key) = &header.key {
                    space.reject_taken_key(key)?;
                }
                Session {
                    record: Record::new(&header),
                    header,
                    log: Vec::new(),
                    trashed_at: None,
                }
            };
            let mut new = 0;
            let first = next.record.info.head;
            for stored in entries {
                let info = &next.record.info;
                if stored.seq <= info.head {
                    let index = seq_to_usize(stored.seq).saturating_sub(1);
                    if next
                        .log
                        .get(index)
                        .is_none_or(|existing| existing.digest != stored.digest)
                    {
                        return Err(StoreError::Moved {
                            id,
                            expected: Seq(stored.seq.0.saturating_sub(1)),
                            found: info.head,
                        });
                    }
                    continue;
                }
                if stored.seq != info.head.next() {
                    return Err(StoreError::Moved {
                        id,
                        expected: Seq(stored.seq.0 - 1),
                        found: info.head,
                    });
                }
                refuse_large_entry(&stored.payload)?;
                verify_entry(&id, &stored, &info.digest)?;
                next.record.apply(&decode_entry(&id, &stored)?);
                next.log.push(Arc::new(stored));
                new += 1;
            }
            if !space.sessions.contains_key(&id) {
                space.record_change(&id, StoredChangeKind::Created);
            }
            for seq in first.0 + 1..=next.record.info.head.0 {
                space.record_change(&id, StoredChangeKind::Appended(Seq(seq)));
            }
            space.sessions.insert(id, next);
            Ok(new)
        })
    }
}

/// The entries of a range.
fn read_range(log: &[Arc<StoredEntry>], read: ReadRange) -> Vec<StoredEntry> {
    let end = read
        .to
        .map_or(log.len(), |to| seq_to_usize(to).min(log.len()));
    let start = seq_to_usize(read.from).max(1) - 1;
    let stretch = log.get(start..end).unwrap_or(&[]);
    let stretch = if read.from_end {
        &stretch[stretch.len().saturating_sub(read.limit)..]
    } else {
        &stretch[..stretch.len().min(read.limit)]
    };
    stretch.iter().map(|entry| (**entry).clone()).collect()
}
