//! Erasing content for good.

use rusqlite::params;
use throughline_model::{Seq, SessionRef};
use throughline_store::StoreError;

use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::rebuild::rebuild_session;
use crate::tx::Tx;
use crate::{read, rows};

impl SqliteStore {
    pub(crate) async fn erase_entries(
        &self,
        of: &SessionRef,
        entries: &[Seq],
        reason: Option<&str>,
    ) -> Result<(), StoreError> {
        let (of, entries) = (of.clone(), entries.to_vec());
        let reason = reason.map(ToOwned::to_owned);
        self.writer
            .write(move |tx| erase(tx, &of, &entries, reason.as_deref()))
            .await
    }
}

fn erase(
    tx: &mut Tx<'_>,
    of: &SessionRef,
    entries: &[Seq],
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let failed = during("erasing entries");
    let live = tx.live(of)?;
    let (pk, shared, head) = (live.pk, live.shared, live.record.card.head);
    if let Some(seq) = entries
        .iter()
        .find(|seq| **seq == Seq::ZERO || **seq > head)
    {
        return Err(StoreError::NoSuchEntry {
            id: of.id.clone(),
            seq: *seq,
            head,
        });
    }
    tx.flush()?;
    tx.overwrite()?;
    let stretches = read::stretches(tx.connection, pk, shared, head)?;
    let mut owners = Vec::new();
    for seq in entries {
        let Some(stretch) = stretches.iter().find(|s| s.from <= *seq && *seq <= s.to) else {
            continue;
        };
        let found = read::stored(tx.connection, stretch.session, *seq, 1)?;
        let Some(stored) = found.first().filter(|stored| stored.seq == *seq) else {
            return Err(StoreError::DamagedStore {
                what: format!("entry {seq} of session {} is missing", of.id),
                source: None,
            });
        };
        let erased = stored
            .erased(reason)
            .map_err(|error| damaged("a tombstone has no JSON", error))?;
        tx.change("UPDATE entry SET payload = ?2 WHERE pos = ?1")
            .and_then(|mut update| {
                update.execute(params![rows::pos(stretch.session, *seq), erased.payload])
            })
            .map_err(failed)?;
        owners.push(stretch.session);
    }
    owners.sort_unstable();
    owners.dedup();
    for owner in owners {
        crate::blob::release(tx, owner)?;
        rebuild_session(tx, owner)?;
    }
    tx.forget_all();
    Ok(())
}
