//! Keeping the store sound, as the trait has it.

use std::path::Path;

use async_trait::async_trait;
use throughline_model::Owner;
use throughline_store::{ErrorKind, Lease, Progress, Report, StoreError, Upkeep};
use tokio::sync::mpsc;

use crate::error::{damaged, during};
use crate::open::{SqliteStore, side_file};
use crate::{backup, check, lease, rebuild};

/// Sessions rebuilt in one transaction: others get a turn in between.
const REBUILT_AT_ONCE: usize = 64;

#[async_trait]
impl Upkeep for SqliteStore {
    async fn owners(&self) -> Result<Vec<Owner>, StoreError> {
        self.readers
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
                        .map_err(|error| damaged("an owner is none", error))
                })
                .collect()
            })
            .await
    }

    async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.readers.read(lease::list).await
    }

    async fn check(&self, progress: Progress<'_>) -> Result<Report, StoreError> {
        let (tell, mut told) = mpsc::unbounded_channel();
        let checking = self.readers.read(move |connection| {
            check::check(connection, &|done, total| {
                // Nobody listens any more: the check goes on.
                let _ = tell.send((done, total));
            })
        });
        let telling = async {
            while let Some((done, total)) = told.recv().await {
                progress(done, total);
            }
        };
        let (report, ()) = tokio::join!(checking, telling);
        report
    }

    async fn rebuild(&self, progress: Progress<'_>) -> Result<Report, StoreError> {
        let sessions = self.readers.read(rebuild::numbers).await?;
        let total = sessions.len() as u64;
        for (done, some) in sessions.chunks(REBUILT_AT_ONCE).enumerate() {
            progress((done * REBUILT_AT_ONCE) as u64, total);
            let some = some.to_vec();
            self.writer
                .write(move |tx| {
                    tx.flush()?;
                    for session in &some {
                        match rebuild::rebuild_one(tx, *session) {
                            // Left as it is; the check that follows tells of it.
                            Err(error) if error.kind() == ErrorKind::Damaged => {}
                            other => other?,
                        }
                    }
                    tx.forget_all();
                    Ok(())
                })
                .await?;
        }
        self.check(progress).await
    }

    async fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<(), StoreError> {
        let to = to.to_owned();
        progress(0, 1);
        self.readers
            .read_plain(move |connection| backup::copy(connection, &to))
            .await?;
        progress(1, 1);
        Ok(())
    }

    async fn size(&self) -> Result<u64, StoreError> {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        Ok(size(&self.path) + size(&side_file(&self.path, "-wal")))
    }

    async fn close(&self) -> Result<(), StoreError> {
        // The writer last: whoever is last brings everything into the one file.
        self.readers.close();
        self.writer.close();
        Ok(())
    }
}
