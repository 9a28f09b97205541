//! Implements [`LogStore`]: creates, appends to, reads, forks, erases and imports logs.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_model::{
    EntryId, GENESIS, Owner, Record, Seq, SessionHeader, SessionRef, StoredEntry,
};
use throughline_store::{
    Append, AppendKind, AppendOutcome, CreateOutcome, LogStore, PreparedAppend, ReadRange,
    StoreError, decode_entry,
};

use crate::store::RemoteStore;
use crate::wire::{self, EntryToAppend};

#[async_trait]
impl LogStore for RemoteStore {
    async fn create(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        let id = header.id.clone();
        let call = wire::Create { birth: header };
        let outcome = self
            .client()
            .call_with_outcome(self.credentials_of(owner)?, &call)
            .await;
        let mut created = outcome.result?;
        // An earlier attempt whose answer was lost created it.
        if outcome.may_be_done && created.record.info.id == id {
            created.existed = false;
        }
        Ok(created)
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError> {
        let credentials = self.credentials_of(&to.owner)?;
        let prepared = PreparedAppend::new(append)?;
        let parts = prepared.append.entries.iter().zip(&prepared.payloads);
        let call = wire::Append {
            session: to.id.clone(),
            expect: prepared.append.expect,
            on_conflict: prepared.append.on_conflict.clone(),
            fence: prepared.append.fence.clone(),
            entries: parts
                .map(|(new, (payload, _))| EntryToAppend {
                    id: new.id,
                    at: new.at,
                    payload: payload.clone(),
                })
                .collect(),
        };
        let outcome = self.client().call_with_outcome(credentials, &call).await;
        let placed = outcome.result?;
        if placed.how != AppendKind::Repeated {
            let entries =
                Arc::new(prepared).complete(&placed.session, placed.rebased, placed.places)?;
            return Ok(AppendOutcome {
                session: placed.session,
                entries,
                kind: placed.how,
            });
        }
        // The stored entries may differ from those sent, so they are read back.
        let target = to.owner.session(&placed.session);
        let mut entries = Vec::with_capacity(placed.places.len());
        if let (Some((first, _)), Some((last, _))) = (placed.places.first(), placed.places.last()) {
            let mut next = *first;
            while next <= *last {
                let read = ReadRange::between(next, *last, placed.places.len());
                let page = self.read_stored(&target, read).await?;
                let Some(end) = page.last().map(|entry| entry.seq) else {
                    break;
                };
                for stored in &page {
                    entries.push(decode_entry(&target.id, stored)?);
                }
                next = end.next();
            }
        }
        let how = if !outcome.may_be_done {
            AppendKind::Repeated
        } else if placed.session != to.id {
            AppendKind::Forked
        } else if placed.rebased.is_some() {
            AppendKind::Rebased
        } else {
            AppendKind::Appended
        };
        Ok(AppendOutcome {
            session: placed.session,
            entries,
            kind: how,
        })
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        let call = wire::GetRecord {
            session: of.id.clone(),
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }

    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError> {
        let call = wire::GetHeader {
            session: of.id.clone(),
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        let call = wire::ReadStored {
            session: of.id.clone(),
            read,
        };
        let stretch = self
            .client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await?;
        stretch.into_verified(&of.id)
    }

    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError> {
        let call = wire::ReadForCopy {
            session: of.id.clone(),
            read,
        };
        let copied = self
            .client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await?;
        Ok((copied.birth, copied.stretch.into_verified(&of.id)?))
    }

    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        header: SessionHeader,
    ) -> Result<Record, StoreError> {
        let call = wire::Fork {
            session: of.id.clone(),
            at,
            birth: header,
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        let call = wire::Locate {
            session: of.id.clone(),
            ids: ids.to_vec(),
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }

    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let call = wire::Erase {
            session: of.id.clone(),
            entries: entries.to_vec(),
            reason: reason.map(ToOwned::to_owned),
        };
        self.client()
            .call(self.credentials_of(&of.owner)?, &call)
            .await
    }

    /// Sends a large log in chunks, each continuing the one before. For a chunk whose answer
    /// was lost, only the entries that the retry added are counted.
    async fn import_log(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        // Verified before anything is sent: if the last chunk is forged, nothing is stored.
        match entries.split_first() {
            Some((first, _)) if first.seq == Seq(1) => {
                wire::verify_chain(GENESIS, &entries, &header.id)?;
            }
            Some((first, rest)) => wire::verify_chain(first.digest, rest, &header.id)?,
            None => {}
        }
        let credentials = self.credentials_of(owner)?;
        let mut entries = entries.into_iter().peekable();
        let mut new = 0;
        loop {
            let mut bytes = 0;
            let piece = std::iter::from_fn(|| {
                bytes += entries.peek()?.payload.len();
                // A chunk has at least one entry: if that alone is too large, the server
                // reports it.
                let fits = bytes <= credentials.max_payload_bytes()
                    || bytes == entries.peek()?.payload.len();
                fits.then(|| entries.next()).flatten()
            });
            let call = wire::ImportLog {
                entries: piece.collect(),
                birth: header.clone(),
            };
            new += self.client().call(credentials, &call).await?;
            if entries.peek().is_none() {
                return Ok(new);
            }
        }
    }
}
