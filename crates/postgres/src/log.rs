//! Implements the session log trait; each operation is in a file of its own.

use async_trait::async_trait;
use throughline_model::{EntryId, Owner, Record, Seq, SessionHeader, SessionRef, StoredEntry};
use throughline_store::{Append, AppendOutcome, CreateOutcome, LogStore, ReadRange, StoreError};

use crate::open::PostgresStore;
use crate::{append, read, rows};

/// Runs a block in a new transaction, with retries while the database is unavailable.
macro_rules! in_transaction {
    ($store:expr, $begin:expr, |$tx:ident| $work:expr) => {
        $crate::retry::retry($store.inner.time_limit, |_| {
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

/// Runs a block in a read transaction of one owner, with retries.
macro_rules! in_read_transaction {
    ($store:expr, $owner:expr, |$tx:ident| $work:expr) => {
        $crate::log::in_transaction!($store, $store.begin_read($owner), |$tx| $work)
    };
}
pub(crate) use in_read_transaction;

/// Runs a block in a write transaction of one owner, with retries.
macro_rules! in_write_transaction {
    ($store:expr, $owner:expr, |$tx:ident| $work:expr) => {
        $crate::log::in_transaction!($store, $store.begin_write($owner), |$tx| $work)
    };
}
pub(crate) use in_write_transaction;

#[async_trait]
impl LogStore for PostgresStore {
    async fn create(
        &self,
        owner: &Owner,
        header: SessionHeader,
    ) -> Result<CreateOutcome, StoreError> {
        self.create_session(owner, &header).await
    }

    async fn append(&self, to: &SessionRef, append: Append) -> Result<AppendOutcome, StoreError> {
        self.append_entries(to, append).await
    }

    async fn record(&self, of: &SessionRef) -> Result<Record, StoreError> {
        in_read_transaction!(self, &of.owner, |tx| {
            let found = rows::find_live_session(tx, of).await?;
            rows::load_record(tx, &of.owner, found.log).await
        })
    }

    async fn header(&self, of: &SessionRef) -> Result<SessionHeader, StoreError> {
        in_read_transaction!(self, &of.owner, |tx| {
            let found = rows::find_live_session(tx, of).await?;
            rows::load_header(tx, &of.owner, found.log).await
        })
    }

    async fn read_stored(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<Vec<StoredEntry>, StoreError> {
        in_read_transaction!(self, &of.owner, |tx| {
            let found = rows::find_live_session(tx, of).await?;
            read::read_page(tx, &of.owner, &found, read).await
        })
    }

    async fn read_for_copy(
        &self,
        of: &SessionRef,
        read: ReadRange,
    ) -> Result<(SessionHeader, Vec<StoredEntry>), StoreError> {
        in_read_transaction!(self, &of.owner, |tx| {
            let found = rows::find_session(tx, of)
                .await?
                .ok_or_else(|| StoreError::NoSuchSession(of.id.clone()))?;
            let header = rows::load_header(tx, &of.owner, found.log).await?;
            Ok((header, read::read_page(tx, &of.owner, &found, read).await?))
        })
    }

    async fn fork(
        &self,
        of: &SessionRef,
        at: Seq,
        header: SessionHeader,
    ) -> Result<Record, StoreError> {
        self.fork_session(of, at, &header).await
    }

    async fn locate(
        &self,
        of: &SessionRef,
        ids: &[EntryId],
    ) -> Result<Vec<Option<Seq>>, StoreError> {
        in_read_transaction!(self, &of.owner, |tx| {
            let found = rows::find_live_session(tx, of).await?;
            append::locate_entries(tx, &of.owner, &found, ids).await
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

    async fn import_log(
        &self,
        owner: &Owner,
        header: SessionHeader,
        entries: Vec<StoredEntry>,
    ) -> Result<u64, StoreError> {
        self.import_entries(owner, &header, &entries).await
    }
}
