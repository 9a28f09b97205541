//! Stores attachments, deduplicated by content digest per owner.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use throughline_model::{Digest, Owner, Seq};
use throughline_store::{BlobStore, ReadRange, StoreError, validate_blob};

use crate::error::during;
use crate::open::SqliteStore;
use crate::tx::Tx;
use crate::{read, rows};

#[async_trait]
impl BlobStore for SqliteStore {
    async fn put_blob(&self, owner: &Owner, bytes: Vec<u8>) -> Result<Digest, StoreError> {
        let digest = validate_blob(&bytes)?;
        let owner = owner.clone();
        self.writer
            .write(move |tx| {
                let owner = tx.ensure_owner(&owner)?;
                tx.prepare_write(
                    "INSERT OR IGNORE INTO blob (owner, digest, data) VALUES (?1, ?2, ?3)",
                )
                .and_then(|mut insert| insert.execute(params![owner, digest.as_bytes(), bytes]))
                .map_err(during("storing an attachment"))?;
                Ok(digest)
            })
            .await
    }

    async fn blob(&self, owner: &Owner, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let (owner, digest) = (owner.clone(), *digest);
        self.reader_pool
            .read(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT data FROM blob JOIN owner ON owner.pk = blob.owner
                         WHERE owner.id = ?1 AND digest = ?2",
                    )
                    .and_then(|mut query| {
                        query
                            .query_row(params![owner.as_str(), digest.as_bytes()], |row| row.get(0))
                            .optional()
                    })
                    .map_err(during("reading an attachment"))?
                    .ok_or(StoreError::NoSuchBlob(digest))
            })
            .await
    }
}

/// Drops the references to attachments that a session's remaining entries do not name, and
/// deletes attachments that nothing references any more.
pub(crate) fn release_unreferenced(tx: &mut Tx<'_>, session: i64) -> Result<(), StoreError> {
    let failed = during("removing attachments");
    let used: Vec<(i64, [u8; 32])> = tx
        .prepare_read(
            "SELECT blob.pk, digest FROM blob_use JOIN blob ON blob.pk = blob WHERE session = ?1",
        )
        .and_then(|mut query| {
            query
                .query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
        .map_err(failed)?;
    if used.is_empty() {
        return Ok(());
    }
    let named = load_referenced(tx, session)?;
    for (blob, digest) in used {
        if named.contains(&Digest::from_bytes(digest)) {
            continue;
        }
        tx.prepare_write("DELETE FROM blob_use WHERE session = ?1 AND blob = ?2")
            .and_then(|mut delete| delete.execute([session, blob]))
            .map_err(failed)?;
        tx.prepare_write(
            "DELETE FROM blob WHERE pk = ?1 AND pk NOT IN (SELECT blob FROM blob_use)",
        )
        .and_then(|mut delete| delete.execute([blob]))
        .map_err(failed)?;
    }
    Ok(())
}

/// Returns the attachments that a session's own entries name.
pub(crate) fn load_referenced(tx: &Tx<'_>, session: i64) -> Result<BTreeSet<Digest>, StoreError> {
    let mut named = BTreeSet::new();
    let Some(end) = read::load_log_end(tx.connection, session)? else {
        return Ok(named);
    };
    let mut next = load_shared_seq(tx, session)?.next();
    loop {
        let page = read::read_stored(tx.connection, end, ReadRange::starting_at(next, 256))?;
        let Some(last) = page.last() else {
            return Ok(named);
        };
        next = last.seq.next();
        for stored in &page {
            // An entry that cannot be decoded names no attachments.
            if let Ok(entry) = stored.decode() {
                let message = entry.message().into_iter();
                named.extend(
                    message
                        .flat_map(|m| m.content.attachments())
                        .map(|a| a.blob),
                );
            }
        }
    }
}

/// Returns how many entries a session shares with its origin.
fn load_shared_seq(tx: &Tx<'_>, session: i64) -> Result<Seq, StoreError> {
    tx.prepare_read("SELECT shared FROM session WHERE pk = ?1")
        .and_then(|mut query| query.query_row([session], |row| row.get(0)))
        .map(rows::seq_from_i64)
        .map_err(during("reading how many entries a session shares"))
}
