//! Implements [`Maintenance`]: check, rebuild, backup, size and close.

use std::path::Path;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{CheckReport, ErrorKind, Lease, Maintenance, ProgressCallback, StoreError};
use tokio::sync::mpsc;

use crate::error::{damaged, during};
use crate::open::{SqliteStore, side_file};
use crate::{backup, check, lease, rebuild};

/// Sessions rebuilt per transaction; other writers get a turn in between.
const REBUILD_BATCH: usize = 64;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.reader_pool
            .read(|connection| {
                let failed = during("reading the owners");
                let mut query = connection
                    .prepare("SELECT id FROM owner ORDER BY id")
                    .map_err(failed)?;
                let ids = query
                    .query_map([], |row| row.get::<_, String>(0))
                    .map_err(failed)?;
                ids.map(|id| {
                    id.map_err(failed)?
                        .parse()
                        .map_err(|error| damaged("an owner cannot be decoded", error))
                })
                .collect()
            })
            .await
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.reader_pool.read(lease::list_leases).await
    }

    async fn check(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        let (sender, mut reports) = mpsc::unbounded_channel();
        let checking = self.reader_pool.read(move |connection| {
            check::check(connection, &|done, total| {
                // Nobody listens any more: the check continues.
                let _ = sender.send((done, total));
            })
        });
        let telling = async {
            while let Some((done, total)) = reports.recv().await {
                progress(done, total);
            }
        };
        let (report, ()) = tokio::join!(checking, telling);
        report
    }

    async fn rebuild(&self, progress: ProgressCallback<'_>) -> Result<CheckReport, StoreError> {
        let sessions = self.reader_pool.read(rebuild::list_session_pks).await?;
        let total = sessions.len() as u64;
        for (done, some) in sessions.chunks(REBUILD_BATCH).enumerate() {
            progress((done * REBUILD_BATCH) as u64, total);
            let some = some.to_vec();
            self.writer
                .write(move |tx| {
                    tx.flush()?;
                    for session in &some {
                        match rebuild::rebuild_one(tx, *session) {
                            // Left unchanged; the check that follows reports it.
                            Err(error) if error.kind() == ErrorKind::Damaged => {}
                            other => other?,
                        }
                    }
                    tx.evict_sessions();
                    Ok(())
                })
                .await?;
        }
        self.check(progress).await
    }

    async fn backup(&self, to: &Path, progress: ProgressCallback<'_>) -> Result<(), StoreError> {
        let to = to.to_owned();
        progress(0, 1);
        self.reader_pool
            .read_without_transaction(move |connection| backup::copy_store(connection, &to))
            .await?;
        progress(1, 1);
        Ok(())
    }

    async fn size(&self) -> Result<u64, StoreError> {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        Ok(size(&self.path) + size(&side_file(&self.path, "-wal")))
    }

    async fn close(&self) -> Result<(), StoreError> {
        // The writer last: closing the last connection checkpoints the log into the main file.
        self.reader_pool.close();
        self.writer.close();
        Ok(())
    }
}
