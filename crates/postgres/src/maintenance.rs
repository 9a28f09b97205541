//! Implements the maintenance trait: owners, check, rebuild, size and close.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{CheckReport, ErrorKind, Lease, Maintenance, ProgressCallback, StoreError};

use crate::error::Fault;
use crate::open::PostgresStore;
use crate::retry::retry;
use crate::tx::TxMode;
use crate::{check, erase, lease, rebuild, rows};

#[async_trait]
impl Maintenance for PostgresStore {
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_system(TxMode::Read).await?;
                let found = tx
                    .query(
                        "reading the owners",
                        "SELECT owner FROM throughline.owner ORDER BY owner",
                        &[],
                    )
                    .await;
                let owners = tx.finish(found).await?;
                let owners = owners.iter().map(|row| rows::parse_column(row, 0));
                Ok(owners.collect::<Result<_, _>>()?)
            })
        })
        .await
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_system(TxMode::Read).await?;
                let found = lease::list_leases(&tx).await;
                tx.finish(found).await
            })
        })
        .await
    }

    async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        let checking = async {
            let tx = self.begin_system(TxMode::Read).await?;
            let done = check::check(&tx, progress).await;
            tx.finish(done).await
        };
        Ok(checking.await.map_err(StoreError::from)?)
    }

    async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        let listing = async {
            let tx = self.begin_system(TxMode::Read).await?;
            let done = check::list_log_numbers(&tx).await;
            tx.finish(done).await
        };
        let logs = listing.await.map_err(StoreError::from)?;
        let total = logs.len() as u64;
        for (done, (owner, log)) in (0..).zip(&logs) {
            progress(done, total);
            let rebuilt = retry(self.inner.time_limit, |_| {
                Box::pin(self.rebuild_log(owner, *log))
            })
            .await;
            match rebuilt {
                // Left unchanged; the check afterwards reports it.
                Err(error) if error.kind() == ErrorKind::Damaged => {}
                other => other?,
            }
        }
        self.check(progress).await
    }

    async fn backup(&self, _: &Path, _: ProgressCallback<'_>) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(
            "be copied to a file: use `tl migrate-store`, or pg_dump",
        ))
    }

    async fn size(&self) -> Result<u64, StoreError> {
        retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_system(TxMode::Read).await?;
                let found = tx
                    .query_opt(
                        "measuring the store",
                        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint
                         FROM pg_class WHERE relkind IN ('r', 'm')
                         AND relnamespace = 'throughline'::regnamespace",
                        &[],
                    )
                    .await;
                let row = tx.finish(found).await?;
                let bytes: i64 = row.map_or(Ok(0), |row| rows::get(&row, 0))?;
                Ok(u64::try_from(bytes).unwrap_or(0))
            })
        })
        .await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.writer.close().await;
        self.inner.pool.close();
        Ok(())
    }
}

impl PostgresStore {
    /// Rebuilds everything derived from one log while its session is locked.
    async fn rebuild_log(&self, owner: &Owner, log: i64) -> Result<(), Fault> {
        let tx = self.begin_write(owner).await?;
        let rebuilding = async {
            rows::lock_owner(&tx, owner).await?;
            erase::lock_heads(&tx, owner, &BTreeSet::from([log])).await?;
            rebuild::rebuild_one(&tx, owner, log).await
        };
        let done = rebuilding.await;
        tx.finish(done).await
    }
}
