//! Imports a log verbatim, keeping its entry numbers and digests.

use throughline_model::{Owner, Record, Seq, SessionHeader, StoredEntry};
use throughline_store::{
    ReadRange, SessionEvent, StoreError, decode_entry, refuse_large_entry, verify_entry,
};

use crate::append::{
    self, EntryRows, insert_session, is_snapshot_due, lock_blob, record_blob_uses, refuse_taken_key,
};
use crate::change_feed::PendingChanges;
use crate::error::Fault;
use crate::log::in_write_transaction;
use crate::open::PostgresStore;
use crate::read;
use crate::rows::{self, SessionRow};
use crate::tx::Tx;

impl PostgresStore {
    pub(crate) async fn import_entries(
        &self,
        owner: &Owner,
        header: &SessionHeader,
        entries: &[StoredEntry],
    ) -> Result<u64, StoreError> {
        let adopted = in_write_transaction!(self, owner, |tx| insert_imported(
            tx, owner, header, entries
        )
        .await)?;
        self.inner.writer.notify_committed();
        Ok(adopted)
    }
}

/// Inserts the entries after checking that they continue the stored log.
async fn insert_imported(
    tx: &Tx,
    owner: &Owner,
    header: &SessionHeader,
    entries: &[StoredEntry],
) -> Result<u64, Fault> {
    let to = owner.session(&header.id);
    let mut notes = PendingChanges::default();
    if rows::find_session(tx, &to).await?.is_none() {
        refuse_taken_key(tx, owner, header).await?;
        insert_session(tx, owner, header, Seq::ZERO, &Record::new(header)).await?;
        notes.add(owner, &header.id, SessionEvent::Created);
    }
    let found = rows::lock_live_session(tx, &to).await?;
    refuse_divergence(tx, owner, &found, entries).await?;
    let mut record = rows::load_record(tx, owner, found.log).await?;
    let (mut new_rows, mut snapshots) = (EntryRows::default(), Vec::new());
    let mut attachments = Vec::new();
    for stored in entries {
        let info = &record.info;
        let diverged = || StoreError::Moved {
            id: header.id.clone(),
            expected: Seq(stored.seq.0.saturating_sub(1)),
            found: info.head,
        };
        if stored.seq <= found.head {
            continue;
        }
        if stored.seq != info.head.next() {
            return Err(diverged().into());
        }
        refuse_large_entry(&stored.payload)?;
        verify_entry(&to.id, stored, &info.digest)?;
        let entry = decode_entry(&to.id, stored)?;
        record.apply(&entry);
        new_rows.push(owner, found.log, stored.clone());
        if is_snapshot_due(stored.seq) {
            snapshots.push(record.clone());
        }
        let message = entry.message().into_iter();
        attachments.extend(
            message
                .flat_map(|m| m.content.attachments())
                .map(|a| a.blob),
        );
    }
    let new = new_rows.len();
    if new > 0 {
        let positions = notes.write_and_take_positions(tx, new).await?;
        new_rows.write(tx, &positions).await?;
        rows::write_record(tx, owner, found.log, &record).await?;
        for record in &snapshots {
            append::write_snapshot(tx, owner, found.log, record).await?;
        }
        // Attachments that are not stored yet may be imported later.
        let mut here = Vec::new();
        for digest in attachments {
            if lock_blob(tx, owner, &digest).await? {
                here.push(digest);
            }
        }
        record_blob_uses(tx, owner, found.log, &here).await?;
    } else {
        notes.write(tx).await?;
    }
    Ok(new as u64)
}

/// Refuses a log that differs from the entries already stored.
async fn refuse_divergence(
    tx: &Tx,
    owner: &Owner,
    found: &SessionRow,
    entries: &[StoredEntry],
) -> Result<(), Fault> {
    let old: Vec<_> = entries.iter().filter(|e| e.seq <= found.head).collect();
    let (Some(first), Some(last)) = (old.first(), old.last()) else {
        return Ok(());
    };
    let mut digests = Vec::new();
    let mut next = first.seq;
    while next <= last.seq {
        let page =
            read::read_page(tx, owner, found, ReadRange::between(next, last.seq, 1_000)).await?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        digests.extend(page.iter().map(|entry| (entry.seq, entry.digest)));
    }
    for stored in old {
        let same = digests
            .binary_search_by_key(&stored.seq, |(seq, _)| *seq)
            .is_ok_and(|index| digests[index].1 == stored.digest);
        if !same {
            return Err(StoreError::Moved {
                id: found.id.clone(),
                expected: Seq(stored.seq.0.saturating_sub(1)),
                found: found.head,
            }
            .into());
        }
    }
    Ok(())
}
