//! Stores attachments, deduplicated by content within an owner.

use std::collections::BTreeSet;

use async_trait::async_trait;
use throughline_model::{Digest, Owner};
use throughline_store::{BlobStore, ReadRange, StoreError, validate_blob};

use crate::error::Fault;
use crate::log::in_read_transaction;
use crate::open::PostgresStore;
use crate::retry::retry;
use crate::rows::SessionRow;
use crate::tx::Tx;
use crate::{read, rows};

#[async_trait]
impl BlobStore for PostgresStore {
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError> {
        let digest = validate_blob(&bytes)?;
        let bytes = &bytes;
        retry(self.inner.time_limit, |_| {
            Box::pin(async move {
                let tx = self.begin_write(owner).await?;
                let putting = async {
                    rows::ensure_owner(&tx, owner).await?;
                    let new = tx
                        .execute(
                            "storing an attachment",
                            "INSERT INTO throughline.blob (owner, digest, data)
                             VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                            params![owner.as_str(), digest.as_bytes().as_slice(), bytes],
                        )
                        .await?;
                    if new == 0 {
                        tx.sync_on_commit().await?;
                    }
                    Ok(())
                };
                let done = putting.await;
                tx.finish(done).await
            })
        })
        .await?;
        Ok(digest)
    }

    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        in_read_transaction!(self, owner, |tx| {
            let row = tx
                .query_opt(
                    "reading an attachment",
                    "SELECT data FROM throughline.blob WHERE owner = $1 AND digest = $2",
                    params![owner.as_str(), digest.as_bytes().as_slice()],
                )
                .await?;
            match row {
                None => Err(StoreError::NoSuchBlob(*digest).into()),
                Some(row) => Ok(rows::get(&row, 0)?),
            }
        })
    }
}

/// Drops a log's references to attachments that its remaining entries no longer name, and
/// deletes attachments that nothing else refers to.
pub(crate) async fn release_unreferenced(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
) -> Result<(), Fault> {
    let doing = "removing attachments";
    let used = tx
        .query(
            doing,
            "SELECT digest FROM throughline.blob_use WHERE owner = $1 AND log = $2",
            params![owner.as_str(), found.log],
        )
        .await?;
    if used.is_empty() {
        return Ok(());
    }
    let named = load_referenced(tx, owner, found).await?;
    for row in &used {
        let digest: &[u8] = rows::get(row, 0)?;
        if named.contains(&rows::decode_digest(digest)?) {
            continue;
        }
        let values = params![owner.as_str(), digest];
        tx.execute(
            doing,
            "DELETE FROM throughline.blob_use WHERE owner = $1 AND log = $3 AND digest = $2",
            params![owner.as_str(), digest, found.log],
        )
        .await?;
        // A transaction about to use the attachment holds its lock; once we have the lock,
        // its use is visible.
        tx.execute(
            doing,
            "SELECT FROM throughline.blob WHERE owner = $1 AND digest = $2 FOR UPDATE",
            values,
        )
        .await?;
        tx.execute(
            doing,
            "DELETE FROM throughline.blob b WHERE b.owner = $1 AND b.digest = $2
             AND NOT EXISTS (SELECT FROM throughline.blob_use u
                 WHERE u.owner = $1 AND u.digest = $2)",
            values,
        )
        .await?;
    }
    Ok(())
}

/// The attachments that a log's own entries name.
pub(crate) async fn load_referenced(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
) -> Result<BTreeSet<Digest>, Fault> {
    let mut named = BTreeSet::new();
    let mut next = found.shared.next();
    loop {
        let page = read::read_page(tx, owner, found, ReadRange::starting_at(next, 256)).await?;
        let Some(last) = page.last() else {
            return Ok(named);
        };
        next = last.seq.next();
        for stored in &page {
            // An entry that cannot be decoded cannot refer to anything that could be shown.
            if let Ok(entry) = stored.decode() {
                let message = entry.message().into_iter();
                let attachments = message.flat_map(|m| m.content.attachments());
                named.extend(attachments.map(|a| a.blob));
            }
        }
    }
}
