//! Erases the content of entries permanently, leaving tombstones.

use rusqlite::params;
use throughline_model::{Seq, SessionRef};
use throughline_store::{ReadRange, SessionEvent, StoreError, refuse_unknown_entries};

use crate::change_feed::record_event;
use crate::error::{damaged, during};
use crate::open::SqliteStore;
use crate::read;
use crate::rebuild::rebuild_with_forks;
use crate::tx::Tx;

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
    let end = tx.load_session(of)?.anchors.end();
    refuse_unknown_entries(&of.id, entries, end.head)?;
    tx.flush()?;
    tx.enable_secure_delete()?;
    let mut owners = Vec::new();
    for seq in entries {
        for placed in read::read_page(tx.connection, end, ReadRange::between(*seq, *seq, 1))? {
            let erased = placed
                .stored
                .to_tombstone(reason)
                .map_err(|error| damaged("a tombstone cannot be encoded as JSON", error))?;
            tx.prepare_write("UPDATE entry SET payload = ?2 WHERE pk = ?1")
                .and_then(|mut update| update.execute(params![placed.link.pk, erased.payload]))
                .map_err(failed)?;
            tx.prepare_write("DELETE FROM token_count WHERE entry = ?1")
                .and_then(|mut delete| delete.execute([placed.link.pk]))
                .map_err(failed)?;
            let home: String = tx
                .prepare_read("SELECT id FROM session WHERE pk = ?1")
                .and_then(|mut query| query.query_row([placed.link.session], |row| row.get(0)))
                .map_err(failed)?;
            record_event(tx, &of.owner, &home, SessionEvent::Erased(*seq))?;
            owners.push(placed.link.session);
        }
    }
    owners.sort_unstable();
    owners.dedup();
    for owner in owners {
        crate::blob::release_unreferenced(tx, owner)?;
        rebuild_with_forks(tx, owner)?;
    }
    tx.evict_sessions();
    Ok(())
}
