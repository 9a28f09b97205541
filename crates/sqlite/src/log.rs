//! Implements [`LogStore`] by delegating each call to the module that does the work.

use async_trait::async_trait;
use throughline_model::{EntryId, Owner, Record, Seq, SessionHeader, SessionRef, StoredEntry};
use throughline_store::{Append, AppendOutcome, CreateOutcome, LogStore, ReadRange, StoreError};

use crate::open::SqliteStore;
use crate::{append, read, rows};

#[async_trait]
impl LogStore for SqliteStore {
    async fn create(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        self.create_session(owner, header).await
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError> {
        self.append_entries(to, append).await
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        let of = of.clone();
        self.reader_pool
            .read(move |connection| {
                rows::load_record(connection, rows::find_live_session(connection, &of)?.pk)
            })
            .await
    }

    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError> {
        let of = of.clone();
        self.reader_pool
            .read(move |connection| {
                rows::load_header(connection, rows::find_live_session(connection, &of)?.pk)
            })
            .await
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        let of = of.clone();
        self.reader_pool
            .read(move |connection| {
                let found = rows::find_live_session(connection, &of)?;
                read::read_stored(connection, found.end, read)
            })
            .await
    }

    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError> {
        let of = of.clone();
        self.reader_pool
            .read(move |connection| {
                let found = rows::find_session(connection, &of)?
                    .ok_or_else(|| StoreError::NoSuchSession(of.id.clone()))?;
                let header = rows::load_header(connection, found.pk)?;
                Ok((header, read::read_stored(connection, found.end, read)?))
            })
            .await
    }

    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        header: SessionHeader,
    ) -> Result<Record, StoreError> {
        self.fork_session(of, at, header).await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        let (of, ids) = (of.clone(), ids.to_vec());
        self.reader_pool
            .read(move |connection| {
                let found = rows::find_live_session(connection, &of)?;
                append::locate_entries(connection, found.pk, found.shared, ids)
            })
            .await
    }

    async fn erase(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        self.erase_entries(of, entries, reason).await
    }

    async fn import_log(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.import_entries(owner, header, entries).await
    }
}
