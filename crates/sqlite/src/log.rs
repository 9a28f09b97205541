//! The log of a session, as the trait has it. Each call is told in a file of its own.

use async_trait::async_trait;
use throughline_model::{Birth, EntryId, Owner, Record, Seq, SessionRef, StoredEntry};
use throughline_store::{Append, Appended, Created, LogStore, Read, StoreError};

use crate::open::SqliteStore;
use crate::{append, read, rows};

#[async_trait]
impl LogStore for SqliteStore {
    async fn create(&self, owner: &Owner, birth: Birth) -> Result<Created, StoreError> {
        self.create_session(owner, birth).await
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<Appended, StoreError> {
        self.append_entries(to, append).await
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        let of = of.clone();
        self.readers
            .read(move |connection| rows::record(connection, rows::find_live(connection, &of)?.pk))
            .await
    }

    async fn birth(&self, of: &SessionRef) -> Result<Birth, StoreError> {
        let of = of.clone();
        self.readers
            .read(move |connection| rows::birth(connection, rows::find_live(connection, &of)?.pk))
            .await
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        let of = of.clone();
        self.readers
            .read(move |connection| {
                let found = rows::find_live(connection, &of)?;
                read::stored(connection, found.end, read)
            })
            .await
    }

    async fn copy_of(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<(Birth, Vec<StoredEntry>), StoreError> {
        let of = of.clone();
        self.readers
            .read(move |connection| {
                let found = rows::find(connection, &of)?
                    .ok_or_else(|| StoreError::NoSuchSession(of.id.clone()))?;
                let birth = rows::birth(connection, found.pk)?;
                Ok((birth, read::stored(connection, found.end, read)?))
            })
            .await
    }

    async fn fork(&self, of: &SessionRef, at: Seq, birth: Birth) -> Result<Record, StoreError> {
        self.fork_session(of, at, birth).await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        let (of, ids) = (of.clone(), ids.to_vec());
        self.readers
            .read(move |connection| {
                let found = rows::find_live(connection, &of)?;
                append::locate(connection, found.pk, found.shared, ids)
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

    async fn adopt(
        &self,
        owner: &Owner,
        birth: Birth,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.adopt_log(owner, birth, entries).await
    }
}
