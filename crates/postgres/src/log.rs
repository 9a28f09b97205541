//! The log of a session, as the trait has it. Each call is told in a file of its own.

use async_trait::async_trait;
use throughline_model::{Birth, EntryId, Owner, Record, Seq, SessionRef, StoredEntry};
use throughline_store::{Append, Appended, Created, LogStore, Read, StoreError};

use crate::open::PostgresStore;
use crate::{append, read, rows};

/// Does something in a transaction that this begins, again if the database was away.
macro_rules! in_transaction {
    ($store:expr, $begin:expr, |$tx:ident| $work:expr) => {
        $crate::patience::patiently($store.shared.patience, |_| {
            Box::pin(async move {
                let transaction = $begin.await?;
                let $tx = &transaction;
                let done = async { $work }.await;
                transaction.finish(done).await
            })
        })
        .await
    };
}
pub(crate) use in_transaction;

/// Reads on behalf of an owner, again if the database was away.
macro_rules! reading {
    ($store:expr, $owner:expr, |$tx:ident| $work:expr) => {
        $crate::log::in_transaction!($store, $store.read($owner), |$tx| $work)
    };
}
pub(crate) use reading;

/// Writes on behalf of an owner, again if the database was away.
macro_rules! writing {
    ($store:expr, $owner:expr, |$tx:ident| $work:expr) => {
        $crate::log::in_transaction!($store, $store.write($owner), |$tx| $work)
    };
}
pub(crate) use writing;

#[async_trait]
impl LogStore for PostgresStore {
    async fn create(&self, owner: &Owner, birth: Birth) -> Result<Created, StoreError> {
        self.create_session(owner, &birth).await
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<Appended, StoreError> {
        self.append_entries(to, append).await
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        reading!(self, &of.owner, |tx| {
            let found = rows::find_live(tx, of).await?;
            rows::record(tx, &of.owner, found.log).await
        })
    }

    async fn birth(&self, of: &SessionRef) -> Result<Birth, StoreError> {
        reading!(self, &of.owner, |tx| {
            let found = rows::find_live(tx, of).await?;
            rows::birth(tx, &of.owner, found.log).await
        })
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        reading!(self, &of.owner, |tx| {
            let found = rows::find_live(tx, of).await?;
            read::page(tx, &of.owner, &found, read).await
        })
    }

    async fn copy_of(
        &self,
        of: &SessionRef,
        read: Read,
    ) -> Result<(Birth, Vec<StoredEntry>), StoreError> {
        reading!(self, &of.owner, |tx| {
            let found = rows::find(tx, of)
                .await?
                .ok_or_else(|| StoreError::NoSuchSession(of.id.clone()))?;
            let birth = rows::birth(tx, &of.owner, found.log).await?;
            Ok((birth, read::page(tx, &of.owner, &found, read).await?))
        })
    }

    async fn fork(&self, of: &SessionRef, at: Seq, birth: Birth) -> Result<Record, StoreError> {
        self.fork_session(of, at, &birth).await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        reading!(self, &of.owner, |tx| {
            let found = rows::find_live(tx, of).await?;
            append::locate(tx, &of.owner, &found, ids).await
        })
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
        self.adopt_log(owner, &birth, &entries).await
    }
}
